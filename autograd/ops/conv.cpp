#include "autograd/ops/images.h"

#include <algorithm>
#include <optional>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/formulas/round_up.h"
#include "core/kernels/images.h"
#include "core/kernels/matmul.h"
#include "core/view.h"

namespace isonorm {
namespace {

using kernels::WindowShape;

// Bytes of windows that are unrolled into matrix rows at a time. The CPU unrolls windows only for input gradients that
// adjoint() does not cover, and the rows should stay in a cache; a device wants large products.
int64_t block_bytes(Device device) { return device == kCpu ? 1 << 20 : 64 << 20; }

// x as products read it: contiguous, and in bf16 only if the device computes in it. Undefined if x is.
Tensor operand(const Tensor& x) {
  if (!x.defined()) return x;
  return detached::contiguous(native_bf16(x.device()) ? x : detached::to(x, acc_dtype(x.dtype())));
}

// Calls f(first, columns) for consecutive blocks of windows; columns [groups, rows, depth] is a buffer for their rows.
template <class F> void for_blocks(const WindowShape& s, TensorOptions options, const F& f) {
  const int64_t total = s.rows(), row = s.groups * s.depth();
  if (total == 0) return;
  const int64_t most =
      std::max<int64_t>(1, block_bytes(options.device) / std::max<int64_t>(1, row * size_of(options.dtype)));
  const int64_t rows = ceil_div(total, ceil_div(total, most));
  const Tensor room = empty({rows * row}, options);
  for (int64_t first = 0; first < total; first += rows) {
    const int64_t n = std::min(rows, total - first);
    f(first, detached::view(detached::narrow(room, 0, 0, n * row), {s.groups, n, s.depth()}));
  }
}

// weight [out, ...] as [groups, out / groups, depth].
Tensor by_group(const WindowShape& s, const Tensor& weight) {
  return detached::view(weight, {s.groups, weight.size(0) / s.groups, s.depth()});
}
// The rows [first, first + n) of t [images, out_h, out_w, out] as [groups, n, out / groups].
Tensor by_group(const WindowShape& s, const Tensor& t, int64_t first, int64_t n) {
  const int64_t out = t.size(3);
  const Tensor rows = detached::narrow(detached::view(t, {s.rows(), out}), 0, first, n);
  return detached::transpose(detached::view(rows, {n, s.groups, out / s.groups}), 0, 1);
}

Tensor forward(const WindowShape& s, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = empty({s.images, s.out_h, s.out_w, weight.size(0)}, x.options(), "conv2d");
  if (x.device() == kCpu) {
    kernels::convolve.on(kCpu, s, y, x, weight, bias, false);
    return y;
  }
  const Tensor w = detached::transpose(by_group(s, weight), 1, 2);
  for_blocks(s, x.options(), [&](int64_t first, const Tensor& columns) {
    kernels::im2col.on(x.device(), s, first, columns, x);
    const Tensor rows = by_group(s, y, first, columns.size(1));
    if (s.groups == 1) return kernels::matmul.on(x.device(), rows, columns, w, bias);
    const Tensor product = empty_like(rows);
    if (bias.defined()) copy_into(product, detached::view(bias, {s.groups, 1, w.size(2)}));
    kernels::matmul.on(x.device(), product, columns, w, bias.defined() ? product : Tensor());
    copy_into(rows, product);
  });
  return y;
}

// The windows of the convolution that maps gradients of outputs to gradients of inputs. None unless the stride is 1,
// the windows fill the padded images, and no window sees only padding.
std::optional<WindowShape> adjoint(const WindowShape& s, int64_t out) {
  WindowShape back = s;
  back.height = s.out_h, back.width = s.out_w, back.channels = out, back.out_h = s.height, back.out_w = s.width;
  back.pad_h = s.reach_h() - 1 - s.pad_h, back.pad_w = s.reach_w() - 1 - s.pad_w;
  const bool fill =
      s.height + 2 * s.pad_h - s.reach_h() + 1 == s.out_h && s.width + 2 * s.pad_w - s.reach_w() + 1 == s.out_w;
  if (s.stride_h != 1 || s.stride_w != 1 || back.pad_h < 0 || back.pad_w < 0 || !fill) return {};
  return back;
}

// Returns dx in the accumulation dtype. The bias is added to each pixel, because dx is also the output of a transposed
// convolution of dy.
Tensor input_gradient(const WindowShape& s, const Tensor& dy, const Tensor& weight, const Tensor& bias = {}) {
  const TensorOptions sums{acc_dtype(dy.dtype()), dy.device()};
  const Tensor dx = empty({s.images, s.height, s.width, s.channels}, sums), w = by_group(s, weight);
  if (const std::optional<WindowShape> back = adjoint(s, weight.size(0)); back && dy.device() == kCpu) {
    kernels::convolve.on(kCpu, *back, dx, dy, weight, bias, true);
    return dx;
  }
  bias.defined() ? copy_into(dx, bias) : fill(dx, 0);
  for_blocks(s, dy.options(), [&](int64_t first, const Tensor& columns) {
    kernels::matmul.on(dy.device(), columns, by_group(s, dy, first, columns.size(1)), w, {});
    kernels::col2im.on(dy.device(), s, first, dx, columns);
  });
  return dx;
}

// Adds to dw and db, each if it is defined; both have the accumulation dtype.
void weight_gradients(const WindowShape& s, const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) {
  if (x.device() == kCpu) {
    const Tensor d = detached::contiguous(dy), rows = detached::view(d, {s.rows(), d.size(3)});
    if (dw.defined()) kernels::filter_gradient.on(kCpu, s, dw, d, x);
    if (db.defined()) kernels::weight_gradient.on(kCpu, {}, db, rows, rows, true);
    return;
  }
  const auto group = [](const Tensor& t, int64_t g) {
    return detached::view(detached::narrow(t, 0, g, 1), part(t.shape(), 1, t.rank()));
  };
  const Tensor w = dw.defined() ? by_group(s, dw) : Tensor(),
               b = db.defined() ? detached::view(db, {s.groups, db.numel() / s.groups}) : Tensor();
  for_blocks(s, x.options(), [&](int64_t first, const Tensor& columns) {
    kernels::im2col.on(x.device(), s, first, columns, x);
    const Tensor d = detached::contiguous(by_group(s, dy, first, columns.size(1)));
    for (int64_t g = 0; g < s.groups; ++g)
      kernels::weight_gradient.on(x.device(), w.defined() ? group(w, g) : Tensor(),
                                  b.defined() ? group(b, g) : Tensor(), group(d, g), group(columns, g), true);
  });
}

// Convolution and its gradients are bilinear, and the gradients of each are the other two. With images x, weights w and
// outputs y, convolution(x, w) has y's shape, transposed(y, w) has x's shape and correlation(y, x) has w's shape.
Tensor convolution(const WindowShape& s, const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor transposed(const WindowShape& s, const Tensor& y, const Tensor& weight, const Tensor& bias);
Tensor correlation(const WindowShape& s, const Tensor& y, const Tensor& x, DType dtype);

Tensor transposed(const WindowShape& s, const Tensor& y, const Tensor& weight, const Tensor& bias) {
  const Tensor sums = input_gradient(s, operand(y), operand(detached::to(weight, y.dtype())),
                                     detached::to(operand(detached::to(bias, y.dtype())), acc_dtype(y.dtype())));
  const Tensor x = detached::to(sums, y.dtype());
  if (auto* n = track("conv_transpose2d", {&x}, {&y, &weight, &bias})) {
    auto rule = [s, y = save_activation(y), weight = save(weight)](Flow& g) {
      if (g.wants(0)) g.give(0, convolution(s, g.out(), weight, {}));
      if (g.wants(1)) g.give(1, correlation(s, y, g.out(), g.dtype(1)));
      if (g.wants(2)) g.give(2, to(g.out(), g.dtype(2)));  // give() sums it
    };
    n->backward = differentiable(std::move(rule), weight.dtype() == y.dtype());
  }
  return x;
}

Tensor correlation(const WindowShape& s, const Tensor& y, const Tensor& x, DType dtype) {
  const Tensor sums =
      empty({y.size(3), s.kernel_h, s.kernel_w, s.channels / s.groups}, {acc_dtype(y.dtype()), y.device()});
  fill(sums, 0);
  weight_gradients(s, sums, {}, operand(y), operand(x));
  const Tensor weight = detached::to(sums, dtype);
  if (auto* n = track("conv2d_correlation", {&weight}, {&y, &x}))
    n->backward = differentiable([s, y = save(y), x = save(x)](Flow& g) {
      if (g.wants(0)) g.give(0, convolution(s, x, g.out(), {}));
      if (g.wants(1)) g.give(1, transposed(s, y, g.out(), {}));
    });
  return weight;
}

Tensor convolution(const WindowShape& s, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor read = weight.dtype() == x.dtype() ? weight : detached::to(weight, x.dtype());
  const Tensor y =
      detached::to(forward(s, operand(x), operand(read), operand(detached::to(bias, x.dtype()))), x.dtype());
  if (auto* n = track("conv2d", {&y}, {&x, &weight, &bias})) {
    auto rule = [s, x = save_activation(x), weight = save(read)](Flow& g) {
      if (grad_enabled()) {
        if (g.wants(0)) g.give(0, transposed(s, g.out(), weight, {}));
        if (g.wants(1)) g.give(1, correlation(s, g.out(), x, g.dtype(1)));
        return g.give(2, g.out());  // give() sums it
      }
      const Tensor dy = operand(g.out()), w = weight;
      if (g.wants(0)) g.give(0, input_gradient(s, dy, operand(w)));
      if (!g.wants(1) && !g.wants(2)) return;  // x is not needed and may have changed
      const auto sums = [&](int i, const Dims& shape) {
        if (!g.wants(i)) return Tensor();
        const Tensor t = empty(shape, {acc_dtype(dy.dtype()), dy.device()});
        fill(t, 0);
        return t;
      };
      const Tensor dw = sums(1, w.shape()), db = sums(2, {w.size(0)});
      weight_gradients(s, dw, db, dy, operand(x));
      if (dw.defined()) g.give(1, dw);
      if (db.defined()) g.give(2, db);
    };
    // A rounded weight has no graph.
    n->backward = differentiable(std::move(rule), weight.dtype() == x.dtype());
  }
  return y;
}

void check_weight(const char* op, const Tensor& weight, const char* expected) {
  check(weight.rank() == 4, op, ": the weight has shape ", weight.shape(), ", expected ", expected);
}

// in: channels of the images that the weight reads. out: channels of the result.
void check_operands(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t in,
                    int64_t out) {
  check(x.size(3) == in, op, ": images ", x.shape(), " are [n, height, width, channels], so they have ", x.size(3),
        " channels; weight ", weight.shape(), " reads ", in,
        in == x.size(1) ? "; permute(x, {0, 2, 3, 1}) moves the channels to the end" : "");
  check(!bias.defined() || bias.shape() == Dims{out}, op, ": bias ", bias.defined() ? bias.shape() : Dims{},
        " does not fit weight ", weight.shape());
  check(detail::fits_rows(weight.dtype(), x.dtype()) && (!bias.defined() || bias.dtype() == weight.dtype()), op,
        ": dtypes differ: input ", x.dtype(), ", weight ", weight.dtype(),
        bias.defined() ? text(", bias ", bias.dtype()) : std::string());
}

Tensor convolve_images(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, Conv2dOptions o) {
  check_same_device(op, x, weight, bias);
  check_weight(op, weight, "[out, kernel height, kernel width, in / groups]");
  WindowShape s = detail::window_shape(op, x, {weight.size(1), weight.size(2)}, {o.stride, o.padding, o.dilation});
  const int64_t out = weight.size(0);
  check(o.groups > 0 && out % o.groups == 0, op, ": ", o.groups, " groups do not divide ", out,
        " channels of the output");
  s.groups = o.groups;
  check_operands(op, x, weight, bias, weight.size(3) * o.groups, out);
  if (s.places() == 1 && s.groups == 1 && o.stride == Size2(1) && o.padding == Size2(0))  // the pixels are the rows
    return linear(x, reshape(weight, {out, s.channels}), bias);
  return convolution(s, x, weight, bias);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, Conv2dOptions o) {
  return convolve_images("conv2d", x, weight, bias, o);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, Conv1dOptions o) {
  check(x.rank() == 3, "conv1d: the input has shape ", x.shape(), ", expected [sequences, length, channels]");
  check(weight.rank() == 3, "conv1d: the weight has shape ", weight.shape(), ", expected [out, kernel, in / groups]");
  const int64_t in = checked_mul(weight.size(2), o.groups, "conv1d");
  check(x.size(2) == in, "conv1d: sequences ", x.shape(), " are [n, length, channels], so they have ", x.size(2),
        " channels; weight ", weight.shape(), " reads ", in,
        in == x.size(1) ? "; transpose(x, 1, 2) moves the channels to the end" : "");
  check(o.stride > 0 && o.padding >= 0 && o.dilation > 0, "conv1d: a stride of ", o.stride, ", a padding of ",
        o.padding, " and a dilation of ", o.dilation, "; expected at least 1, 0 and 1");
  const int64_t window = weight.size(1),
                reach = checked_add(checked_mul(window - 1, o.dilation, "conv1d"), 1, "conv1d"),
                padded = checked_add(x.size(1), checked_mul(2, o.padding, "conv1d"), "conv1d");
  check(reach <= padded, "conv1d: a window of ", window,
        o.dilation == 1 ? "" : text(" with a dilation of ", o.dilation), " is larger than sequences of ", x.size(1),
        " with a padding of ", o.padding);
  const Tensor y = convolve_images("conv1d", unsqueeze(x, 1), unsqueeze(weight, 1), bias,
                                   {{1, o.stride}, {0, o.padding}, {1, o.dilation}, o.groups});
  return squeeze(y, 1);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvTranspose2dOptions o) {
  constexpr const char* op = "conv_transpose2d";
  check_same_device(op, x, weight, bias);
  check_weight(op, weight, "[in, kernel height, kernel width, out / groups]");
  const Size2 kernel{weight.size(1), weight.size(2)};
  detail::check_windows(op, x, kernel, {o.stride, o.padding, o.dilation});
  const int64_t in = weight.size(0), out = checked_mul(weight.size(3), o.groups, op);
  check(o.groups > 0 && in % o.groups == 0, op, ": ", o.groups, " groups do not divide ", in, " channels of the input");
  check_operands(op, x, weight, bias, in, out);
  const auto outputs = [&](int64_t size, int64_t k, int64_t stride, int64_t padding, int64_t more, int64_t dilation) {
    check(more >= 0 && more < std::max(stride, dilation), op, ": an output_padding of ", o.output_padding,
          ", expected less than the stride of ", o.stride, " or the dilation of ", o.dilation);
    const int64_t reach = checked_add(checked_mul(k - 1, dilation, op), 1, op),
                  whole = checked_add(checked_add(checked_mul(size - 1, stride, op), reach, op), more, op),
                  cut = checked_mul(2, padding, op);
    check(whole > cut, op, ": a padding of ", o.padding, " leaves nothing of the output for images ", x.shape(),
          " and a window of ", kernel);
    return whole - cut;
  };
  const int64_t height = outputs(x.size(1), kernel.height, o.stride.height, o.padding.height, o.output_padding.height,
                                 o.dilation.height),
                width = outputs(x.size(2), kernel.width, o.stride.width, o.padding.width, o.output_padding.width,
                                o.dilation.width);
  numel({x.size(0), height, width, out}, op);
  // Throws if all windows together overflow.
  numel({x.size(0), x.size(1), x.size(2), kernel.height, kernel.width, out}, op);
  return transposed(
      {x.size(0), height, width, out, kernel.height, kernel.width, o.stride.height, o.stride.width, o.padding.height,
       o.padding.width, x.size(1), x.size(2), o.dilation.height, o.dilation.width, o.groups},
      x, weight, bias);
}

}  // namespace isonorm
