#include "nn/residual/scaled_norm.h"

#include <cmath>

namespace isonorm::nn {

ScaledNorm::ScaledNorm(int64_t width, const ConnectionOptions& o, double factor) : PreNorm(width, o) {
  scale_by(factor);
}

BlockConnections scaled_norm_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  check_place("layer_norm_scaling", place);
  const double factor = 1 / std::sqrt(static_cast<double>(place.index + 1));
  return each_sublayer(place, [&](int64_t) { return std::make_unique<ScaledNorm>(width, norms, factor); });
}

}  // namespace isonorm::nn
