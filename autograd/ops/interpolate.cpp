#include "autograd/ops/images.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/kernels/images.h"
#include "core/kernels/index.h"
#include "core/view.h"

namespace isonorm {
namespace {

// The positions, in pixels, at which the outputs along a direction are read: f64 [outputs]. factor 0: outputs / pixels.
Tensor places_to_read(int64_t pixels, int64_t outputs, double factor, const InterpolateOptions& o, Device device) {
  const bool nearest = o.mode == Interpolation::nearest;
  if (outputs == pixels || (nearest && outputs == 2 * pixels)) factor = 0;  // as in PyTorch
  const double s = static_cast<double>(pixels), n = static_cast<double>(outputs);
  const Tensor i = arange(0, n, 1, {DType::f64, device});
  // Rounded once, so that integer quotients are exact.
  const auto scaled = [&](const Tensor& k) { return factor > 0 ? k / factor : k * s / n; };
  const Tensor at = nearest           ? floor(scaled(i))
                    : o.align_corners ? i * (s - 1) / std::max(1.0, n - 1)
                                      : scaled(i + 0.5) - 0.5;
  return clamp(at, 0, s - 1);
}

// One direction of an interpolation, a linear map: output i is the sum over k of weight[i, k] x[id[i, k]], for the
// pixel at its position (nearest) or the two pixels around it (bilinear).
class Direction {
 public:
  Direction(int dim, int64_t pixels, const Tensor& places, Interpolation mode)
      : dim_(dim), pixels_(pixels), outputs_(places.numel()), taps_(mode == Interpolation::nearest ? 1 : 2) {
    const Tensor below = floor(places), share = places - below;
    ids_ = to(taps_ == 1 ? below : stack({below, ceil(places)}, 1), DType::i64).reshape({outputs_ * taps_});
    weights_ = taps_ == 1 ? ones_like(places) : stack({1 - share, share}, 1);
    weights_ = weights_.reshape({outputs_, taps_, 1});
  }

  // The map and its adjoint for the CPU's kernel.
  kernels::Taps taps() const {
    return {arange(0, static_cast<double>(outputs_ * taps_ + 1), static_cast<double>(taps_), {DType::i64}), ids_,
            weights_};
  }
  kernels::Taps adjoint_taps() const {
    const std::vector<int64_t> of_output = ids_.to_vector<int64_t>();
    const std::vector<double> weights = weights_.to_vector<double>();
    std::vector<int64_t> starts(pixels_ + 1), ids(of_output.size());
    std::vector<double> moved(of_output.size());
    for (int64_t pixel : of_output) ++starts[pixel];
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), int64_t{0});
    std::vector<int64_t> next = starts;
    for (size_t t = 0; t < of_output.size(); ++t) {
      const int64_t to = next[of_output[t]]++;
      ids[to] = static_cast<int64_t>(t) / taps_, moved[to] = weights[t];
    }
    return {tensor(starts), tensor(ids), tensor(moved)};
  }

  // Applies the map to x, in x's dtype.
  Tensor read(const Tensor& x) const {
    const kernels::IndexShape s = shape_around(x.shape());
    const Tensor pixels = empty({s.outer, outputs_, taps_, s.inner}, x.options());
    kernels::take_rows.on(x.device(), s, pixels, detached::contiguous(x), ids_);
    return resized(taps_ == 1 ? pixels : sum(pixels * weights_.to(x.dtype()), {2}), x.shape(), outputs_);
  }
  // The adjoint of read(), in the accumulation dtype.
  Tensor spread(const Tensor& dy) const {
    const kernels::IndexShape s = shape_around(dy.shape());
    const Tensor dx = empty({s.outer, s.length, s.inner}, {acc_dtype(dy.dtype()), dy.device()}),
                 each = detached::reshape(dy, {s.outer, outputs_, 1, s.inner});
    kernels::add_rows.on(dy.device(), s, dx, detached::contiguous(taps_ == 1 ? each : each * weights_.to(dy.dtype())),
                         ids_);
    return resized(dx, dy.shape(), pixels_);
  }

 private:
  kernels::IndexShape shape_around(const Dims& shape) const {
    return {numel(part(shape, 0, dim_)), pixels_, numel(part(shape, dim_ + 1, shape.rank))};
  }
  Tensor resized(const Tensor& x, Dims shape, int64_t size) const {
    shape[dim_] = size;
    return detached::view(x, shape);
  }

  int dim_;
  int64_t pixels_, outputs_, taps_;
  Tensor ids_, weights_;
};

Tensor resampled(const Tensor& x, const Size2& size, const kernels::Taps& rows, const kernels::Taps& columns) {
  const Tensor y = empty({x.size(0), size.height, size.width, x.size(3)}, x.options());
  kernels::resample.on(kCpu, y, detached::contiguous(x), rows, columns);
  return y;
}

}  // namespace

Tensor interpolate(const Tensor& x, InterpolateOptions o) {
  constexpr const char* op = "interpolate";
  detail::check_windows(op, x, 1, {.stride = 1, .padding = 0, .dilation = 1});
  const bool by_size = !(o.size == Size2(0)), by_factor = o.scale_factor.height != 0 || o.scale_factor.width != 0;
  check(by_size != by_factor, op, ": a size of ", o.size, " and a scale_factor of ", o.scale_factor,
        ", expected exactly one of them");
  check(o.mode == Interpolation::bilinear || !o.align_corners, op, ": mode nearest has no align_corners");
  const auto outputs = [&](int64_t pixels, double factor) {
    const double n = std::floor(static_cast<double>(pixels) * factor);
    check(n >= 1 && n < 0x1p53, op, ": a scale_factor of ", o.scale_factor, " for images ", x.shape());
    return static_cast<int64_t>(n);
  };
  const Size2 size =
      by_size ? o.size : Size2{outputs(x.size(1), o.scale_factor.height), outputs(x.size(2), o.scale_factor.width)};
  check(size.height > 0 && size.width > 0, op, ": a size of ", size, ", expected 1 x 1 or more");
  numel({x.size(0), size.height, size.width, x.size(3)}, op);
  const auto along = [&](int dim, int64_t outputs, double factor) {
    const int64_t pixels = x.size(dim);
    return Direction(dim, pixels, places_to_read(pixels, outputs, factor, o, x.device()), o.mode);
  };
  const Direction rows = along(1, size.height, o.scale_factor.height),
                  columns = along(2, size.width, o.scale_factor.width);
  const bool by_kernel = x.device() == kCpu && !use_reference();
  // bf16 is computed in f32 and rounded once.
  const auto map = [=](const Tensor& in) {
    const NoGrad no_grad;
    const Tensor wide = to(in, acc_dtype(in.dtype()));
    return to(by_kernel ? resampled(wide, size, rows.taps(), columns.taps()) : columns.read(rows.read(wide)),
              in.dtype());
  };
  const auto adjoint = [=, pixels = Size2{x.size(1), x.size(2)}](const Tensor& dy) {
    const NoGrad no_grad;
    const Tensor wide = to(dy, acc_dtype(dy.dtype()));
    return to(by_kernel ? resampled(wide, pixels, rows.adjoint_taps(), columns.adjoint_taps())
                        : rows.spread(columns.spread(wide)),
              dy.dtype());
  };
  return detail::linear_map(op, x, map, adjoint);
}

}  // namespace isonorm
