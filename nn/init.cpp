#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "core/view.h"
#include "nn/modes.h"

namespace isonorm::nn::init {
namespace {

// Inputs plus outputs of a weight [out, in].
double fans(const Dims& shape) {
  check(shape.rank == 2, "init: shape ", shape, " is not [out, in]");
  return static_cast<double>(shape[0] + shape[1]);
}

template <class Draw> Tensor drawn_unless_skipped(const Dims& shape, const Draw& draw) {
  return SkipInit::is_on() ? full(shape, std::numeric_limits<double>::quiet_NaN()) : draw();
}

Tensor draw_orthogonal(const Dims& shape) {
  const int64_t n = std::min(shape[0], shape[1]), length = std::max(shape[0], shape[1]);
  const auto count = static_cast<size_t>(length);
  std::vector<double> rows = randn({n, length}, {DType::f64}).to_vector<double>();
  for (int64_t i = 0; i < n; ++i) {
    const std::span<double> row(rows.data() + static_cast<size_t>(i) * count, count);
    for (int pass = 0; pass < 2; ++pass)  // the second pass removes the rounding error of the first
      for (int64_t j = 0; j < i; ++j) {
        const std::span<const double> before(rows.data() + static_cast<size_t>(j) * count, count);
        const double dot = std::inner_product(row.begin(), row.end(), before.begin(), 0.0);
        for (size_t k = 0; k < count; ++k) row[k] -= dot * before[k];
      }
    const double norm = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    for (double& x : row) x /= norm;
  }
  const Tensor made = from_vector(rows, {n, length}).to(DType::f32);
  return shape[0] <= shape[1] ? made : detached::contiguous(detached::transpose(made, 0, 1));
}

}  // namespace

Tensor uniform(const Dims& shape, double lo, double hi) {
  return drawn_unless_skipped(shape, [&] { return isonorm::uniform(shape, lo, hi); });
}
Tensor normal(const Dims& shape, double mean, double deviation) {
  return drawn_unless_skipped(shape, [&] { return randn(shape) * deviation + mean; });
}
Tensor truncated_normal(const Dims& shape, double deviation) {
  return drawn_unless_skipped(
      shape, [&] { return isonorm::truncated_normal(shape, 0, deviation, -2 * deviation, 2 * deviation); });
}
Tensor xavier_uniform(const Dims& shape, double gain) {
  const double bound = gain * std::sqrt(6 / fans(shape));
  return init::uniform(shape, -bound, bound);
}
Tensor xavier_normal(const Dims& shape, double gain) { return normal(shape, 0, gain * std::sqrt(2 / fans(shape))); }
Tensor kaiming_normal(const Dims& shape) {
  check(shape.rank == 2, "init: shape ", shape, " is not [out, in]");
  return normal(shape, 0, std::sqrt(2 / static_cast<double>(shape[1])));
}

Tensor orthogonal(const Dims& shape) {
  check(shape.rank == 2, "init: shape ", shape, " is not [out, in]");
  return drawn_unless_skipped(shape, [&] { return draw_orthogonal(shape); });
}

}  // namespace isonorm::nn::init
