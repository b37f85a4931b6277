#include "nn/residual/scaled_norm.h"

#include <cmath>

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

ScaledNorm::ScaledNorm(const Stream& stream, StreamNormOptions o, double factor)
    : PreNorm(stream, o), factor_(factor) {}

Tensor ScaledNorm::reader_weight(const Tensor& weight) const { return PreNorm::reader_weight(weight * factor_); }

Tensor ScaledNorm::reader_bias(const Tensor& weight, const Tensor& own) const {
  return bias.defined() ? PreNorm::reader_bias(weight * factor_, own) : own;
}

BlockConnections scaled_norm_block(const Stream& stream, const StreamNormOptions& norms, const BlockPlace& place) {
  check_place("layer_norm_scaling", place);
  const double factor = 1 / std::sqrt(static_cast<double>(place.index + 1));
  return each_sublayer(place, [&](int64_t) { return std::make_unique<ScaledNorm>(stream, norms, factor); });
}

}  // namespace isonorm::nn
