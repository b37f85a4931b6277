#include "nn/residual/scaled_norm.h"

#include <cmath>

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

ScaledNorm::ScaledNorm(const Stream& stream, StreamNormOptions o, double factor)
    : PreNorm(stream, o), factor_(factor) {}

Mapped ScaledNorm::folded(const Tensor& weight, const Tensor& bias) const {
  return PreNorm::folded(weight * factor_, bias);
}

BlockConnections scaled_norm_block(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth) {
  check_place("layer_norm_scaling", index, depth);
  const double factor = 1 / std::sqrt(static_cast<double>(index + 1));
  return {std::make_unique<ScaledNorm>(stream, norms, factor), std::make_unique<ScaledNorm>(stream, norms, factor)};
}

}  // namespace isonorm::nn
