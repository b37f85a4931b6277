#include "autograd/ops/images.h"

#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/kernels/images.h"
#include "core/view.h"

namespace isonorm::detail {

void check_windows(const char* op, const Tensor& x, Size2 kernel, const Steps& steps) {
  const Size2 stride = steps.stride, padding = steps.padding, dilation = steps.dilation;
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() == 4, op, ": the input has shape ", x.shape(), ", expected [images, height, width, channels]");
  const Size2 image{x.size(1), x.size(2)};
  check(image.height > 0 && image.width > 0, op, ": images of ", image, " pixels in ", x.shape());
  check(kernel.height > 0 && kernel.width > 0, op, ": a window of ", kernel);
  check(stride.height > 0 && stride.width > 0, op, ": a stride of ", stride);
  check(padding.height >= 0 && padding.width >= 0, op, ": a padding of ", padding);
  check(dilation.height > 0 && dilation.width > 0, op, ": a dilation of ", dilation);
}

kernels::WindowShape window_shape(const char* op, const Tensor& x, Size2 kernel, const Steps& steps) {
  check_windows(op, x, kernel, steps);
  const Size2 image{x.size(1), x.size(2)}, stride = steps.stride, padding = steps.padding, dilation = steps.dilation;
  const bool ceil = steps.ceil;
  const auto outputs = [&](int64_t size, int64_t k, int64_t step, int64_t pad, int64_t apart) {
    const int64_t padded = checked_add(size, checked_mul(2, pad, op), op),
                  reach = checked_add(checked_mul(k - 1, apart, op), 1, op);
    const int64_t room = checked_add(padded, ceil ? step - 1 : 0, op) - reach;
    check(room >= 0, op, ": a window of ", kernel, dilation == Size2(1) ? "" : text(" with a dilation of ", dilation),
          " is larger than images of ", image, " with a padding of ", padding);
    const int64_t count = room / step + 1;
    return count - (ceil && (count - 1) * step >= size + pad ? 1 : 0);
  };
  const int64_t out_h = outputs(image.height, kernel.height, stride.height, padding.height, dilation.height),
                out_w = outputs(image.width, kernel.width, stride.width, padding.width, dilation.width);
  // Throws if all windows together overflow.
  numel({x.size(0), out_h, out_w, kernel.height, kernel.width, x.size(3)}, op);
  return {x.size(0),    image.height,   image.width,   x.size(3), kernel.height, kernel.width,    stride.height,
          stride.width, padding.height, padding.width, out_h,     out_w,         dilation.height, dilation.width};
}

}  // namespace isonorm::detail

namespace isonorm {

namespace {

kernels::WindowShape pool_shape(const char* op, const Tensor& x, Size2 window, const Pool2dOptions& o) {
  kernels::WindowShape s =
      detail::window_shape(op, x, window, {o.stride.value_or(window), o.padding, o.dilation, o.ceil});
  s.padding_counts = o.count_padding;
  check(2 * s.pad_h <= s.reach_h() && 2 * s.pad_w <= s.reach_w(), op, ": a padding of ", o.padding,
        " is above half a window of ", window);
  return s;
}

Tensor outputs(const char* op, const kernels::WindowShape& s, TensorOptions options) {
  return empty({s.images, s.out_h, s.out_w, s.channels}, options, op);
}
Tensor inputs(const kernels::WindowShape& s, TensorOptions options) {
  return empty({s.images, s.height, s.width, s.channels}, options);
}

}  // namespace

namespace {

// Per output, the pixel that `place` names (i64, [images, outputs, channels]), and whether it exists (u8): a
// window may lie in the padding.
struct Chosen {
  Tensor pixel, inside;
};
Chosen chosen_pixels(const kernels::WindowShape& s, const Tensor& place) {
  const auto positions = [&](int64_t count, int64_t stride, int64_t pad, const Dims& shape) {
    const double first = -static_cast<double>(pad), step = static_cast<double>(stride);
    return arange(first, first + step * (static_cast<double>(count) - 0.5), step, {DType::f64, place.device()})
        .reshape(shape);
  };
  const Tensor number = to(place, DType::f64), i = floor(number / static_cast<double>(s.kernel_w)),
               j = number - i * static_cast<double>(s.kernel_w);
  const Tensor row = positions(s.out_h, s.stride_h, s.pad_h, {s.out_h, 1, 1}) + i * static_cast<double>(s.dilation_h),
               column = positions(s.out_w, s.stride_w, s.pad_w, {s.out_w, 1}) + j * static_cast<double>(s.dilation_w);
  const double height = static_cast<double>(s.height), width = static_cast<double>(s.width);
  const Tensor inside = (row >= 0) & (row < height) & (column >= 0) & (column < width);
  const Tensor pixel = to(masked_fill(row * width + column, !inside, 0), DType::i64);
  const Dims shape{s.images, s.out_h * s.out_w, s.channels};
  return {detached::view(pixel, shape), detached::view(inside, shape)};
}

// x at the chosen pixels; 0 if a window lies in the padding.
Tensor at_places(const kernels::WindowShape& s, const Tensor& x, const Tensor& place) {
  const NoGrad no_grad;
  const Chosen at = chosen_pixels(s, place);
  const Tensor pixels = reshape(x, {s.images, s.height * s.width, s.channels});
  return reshape(masked_fill(gather(pixels, 1, at.pixel), !at.inside, 0), place.shape());
}

// The adjoint of at_places().
Tensor from_places(const kernels::WindowShape& s, const Tensor& y, const Tensor& place) {
  const Tensor x = inputs(s, y.options());
  kernels::max_pool_backward.on(y.device(), s, x, detached::contiguous(y), place);
  return x;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Size2 window, Pool2dOptions o) {
  const kernels::WindowShape s = pool_shape("max_pool2d", x, window, o);
  check(s.places() <= kernels::kMostPlaces, "max_pool2d: a window of ", window, " has over ", kernels::kMostPlaces,
        " places");
  Tensor y = outputs("max_pool2d", s, x.options());
  const Tensor place = takes_gradient(x) ? outputs("max_pool2d", s, {DType::u8, x.device()}) : Tensor();
  kernels::max_pool.on(x.device(), s, y, place, detached::contiguous(x));
  if (auto* n = track("max_pool2d", {&y}, {&x}))
    n->backward = differentiable([s, place](Flow& g) {
      g.give(0, detail::linear_map(
                    "max_pool2d", g.out(), [=](const Tensor& dy) { return from_places(s, dy, place); },
                    [=](const Tensor& dx) { return at_places(s, dx, place); }));
    });
  return y;
}

Tensor avg_pool2d(const Tensor& x, Size2 window, Pool2dOptions o) {
  const kernels::WindowShape s = pool_shape("avg_pool2d", x, window, o);
  const auto mean = [s](const Tensor& in) {
    const Tensor y = outputs("avg_pool2d", s, in.options());
    kernels::avg_pool.on(in.device(), s, y, detached::contiguous(in));
    return y;
  };
  const auto shares = [s](const Tensor& dy) {
    const Tensor dx = inputs(s, dy.options());
    kernels::avg_pool_backward.on(dy.device(), s, dx, detached::contiguous(dy));
    return dx;
  };
  return detail::linear_map("avg_pool2d", x, mean, shares);
}

namespace {
// adaptive_avg_pool2d() along one dimension.
Tensor adaptive_means(const Tensor& x, int dim, int64_t outputs) {
  const int64_t pixels = x.size(dim);
  std::vector<Tensor> means;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t begin = i * pixels / outputs, end = ceil_div((i + 1) * pixels, outputs);
    means.push_back(mean(narrow(x, dim, begin, end - begin), {dim}, true));
  }
  return cat(means, dim);
}
}  // namespace

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size) {
  constexpr const char* op = "adaptive_avg_pool2d";
  detail::check_windows(op, x, 1, {.stride = 1, .padding = 0, .dilation = 1});
  check(size.height > 0 && size.width > 0, op, ": a size of ", size, ", expected 1 x 1 or more");
  numel({x.size(0), size.height, size.width, x.size(3)}, op);
  const Size2 window{x.size(1) / size.height, x.size(2) / size.width};
  if (window.height * size.height == x.size(1) && window.width * size.width == x.size(2)) return avg_pool2d(x, window);
  const Tensor sums = to(x, acc_dtype(x.dtype()));
  return to(adaptive_means(adaptive_means(sums, 1, size.height), 2, size.width), x.dtype());
}

}  // namespace isonorm
