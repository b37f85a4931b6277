#include "autograd/ops/interpolate.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/adjoint.h"
#include "autograd/ops/arrange.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/kernels/index.h"
#include "core/view.h"

namespace isonorm {
namespace {

// The places, in pixels, at which the outputs along a direction are read: f64 [outputs].
Tensor places_to_read(int64_t pixels, int64_t outputs, double factor, const InterpolateOptions& o, Device device) {
  const double s = static_cast<double>(pixels), n = static_cast<double>(outputs);
  const Tensor i = arange(0, n, 1, {DType::f64, device});
  // Rounded once, so that quotients that are integers are exact.
  const auto scaled = [&](const Tensor& k) { return factor > 0 ? k / factor : k * s / n; };
  const Tensor at = o.mode == Interpolation::nearest ? floor(scaled(i))
                    : o.align_corners                ? i * (s - 1) / std::max(1.0, n - 1)
                                                     : scaled(i + 0.5) - 0.5;
  return clamp(at, 0, s - 1);
}

// One direction of an interpolation, a linear map: output i is the sum of weight[i, k] x[id[i, k]] over the pixel at
// its place, or the two pixels around it.
class Direction {
 public:
  Direction(int dim, int64_t pixels, const Tensor& places, Interpolation mode)
      : dim_(dim), pixels_(pixels), outputs_(places.numel()), taps_(mode == Interpolation::nearest ? 1 : 2) {
    const Tensor below = floor(places), share = places - below;
    ids_ = to(taps_ == 1 ? below : stack({below, ceil(places)}, 1), DType::i64).reshape({outputs_ * taps_});
    if (taps_ == 2) weights_ = stack({1 - share, share}, 1).reshape({outputs_, 2, 1});
  }

  // In x's dtype.
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
  // In f32 if the values are of bf16, and rounded once.
  const auto map = [=](const Tensor& in) {
    const NoGrad no_grad;
    return to(columns.read(rows.read(to(in, acc_dtype(in.dtype())))), in.dtype());
  };
  const auto adjoint = [=](const Tensor& dy) {
    const NoGrad no_grad;
    return to(rows.spread(columns.spread(to(dy, acc_dtype(dy.dtype())))), dy.dtype());
  };
  return detail::linear_map(op, x, map, adjoint);
}

}  // namespace isonorm
