#include "autograd/ops/interpolate.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/adjoint.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/kernels/index.h"
#include "core/view.h"

namespace isonorm {
namespace {

// The positions, in pixels, at which the outputs of one direction are read.
std::vector<double> places_to_read(int64_t pixels, int64_t outputs, double factor, const InterpolateOptions& o) {
  const double s = static_cast<double>(pixels), n = static_cast<double>(outputs);
  // Rounded once, so that quotients that are integers are exact.
  const auto scaled = [&](double i) { return factor > 0 ? i / factor : i * s / n; };
  std::vector<double> places;
  for (int64_t k = 0; k < outputs; ++k) {
    const double i = static_cast<double>(k);
    const double at = o.mode == Interpolation::nearest ? std::floor(scaled(i))
                      : o.align_corners                ? i * (s - 1) / std::max(1.0, n - 1)
                                                       : scaled(i + 0.5) - 0.5;
    places.push_back(std::clamp(at, 0.0, s - 1));
  }
  return places;
}

// One direction of an interpolation, a linear map: output i is the sum of weight[i, k] x[id[i, k]] over the one or two pixels k
// beside its place.
class Direction {
 public:
  Direction(int dim, int64_t pixels, const std::vector<double>& places, Device device)
      : dim_(dim), pixels_(pixels), outputs_(static_cast<int64_t>(places.size())) {
    for (const double at : places) taps_ = at > std::floor(at) ? 2 : taps_;
    std::vector<int64_t> ids;
    std::vector<double> weights;
    for (const double at : places) {
      const double below = std::floor(at), share = at - below;
      ids.push_back(static_cast<int64_t>(below)), weights.push_back(1 - share);
      if (taps_ == 2) ids.push_back(ids.back() + (share > 0 ? 1 : 0)), weights.push_back(share);
    }
    ids_ = from_vector(ids, {outputs_ * taps_}).to(device);
    weights_ = from_vector(weights, {outputs_, taps_, 1}).to(device);
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
  int64_t pixels_, outputs_, taps_ = 1;
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
  const Direction rows(1, x.size(1), places_to_read(x.size(1), size.height, o.scale_factor.height, o), x.device());
  const Direction columns(2, x.size(2), places_to_read(x.size(2), size.width, o.scale_factor.width, o), x.device());
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
