#include "autograd/ops/interpolate.h"

#include <algorithm>
#include <cmath>

#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"

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

// x along a dimension at these places, each between two pixels or on one.
Tensor read_at(const Tensor& x, int dim, const std::vector<double>& places) {
  std::vector<int64_t> below, above;
  std::vector<double> shares;  // of the pixel above
  for (const double at : places) {
    below.push_back(static_cast<int64_t>(at));
    shares.push_back(at - std::floor(at));
    above.push_back(below.back() + (shares.back() > 0 ? 1 : 0));
  }
  const int64_t count = static_cast<int64_t>(places.size());
  const auto pixels = [&](const std::vector<int64_t>& ids) {
    return index_select(x, dim, from_vector(ids, {count}).to(x.device()));
  };
  if (below == above) return pixels(below);
  Dims along{1, 1, 1, 1};
  along[dim] = count;
  const Tensor share = from_vector(shares, along).to(x.dtype()).to(x.device());
  return pixels(below) * (1 - share) + pixels(above) * share;
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
  const Tensor read = o.mode == Interpolation::nearest ? x : to(x, acc_dtype(x.dtype()));
  const Tensor rows = read_at(read, 1, places_to_read(x.size(1), size.height, o.scale_factor.height, o));
  return to(read_at(rows, 2, places_to_read(x.size(2), size.width, o.scale_factor.width, o)), x.dtype());
}

}  // namespace isonorm
