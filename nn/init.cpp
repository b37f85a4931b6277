#include "nn/init.h"

#include <cmath>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"

namespace isonorm::nn::init {
namespace {

// Inputs plus outputs of a weight [out, in].
double fans(const Dims& shape) {
  check(shape.rank == 2, "init: shape ", shape, " is not [out, in]");
  return static_cast<double>(shape[0] + shape[1]);
}

}  // namespace

Tensor uniform(const Dims& shape, double lo, double hi) { return isonorm::uniform(shape, lo, hi); }
Tensor normal(const Dims& shape, double mean, double deviation) { return randn(shape) * deviation + mean; }
Tensor truncated_normal(const Dims& shape, double deviation) {
  return isonorm::truncated_normal(shape, 0, deviation, -2 * deviation, 2 * deviation);
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

}  // namespace isonorm::nn::init
