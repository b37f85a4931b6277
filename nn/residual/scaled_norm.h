// LayerNorm Scaling (Sun et al., 2502.05795, equation 7): Pre-LN whose norms in block l = 1, 2, ... are multiplied by
// 1/sqrt(l). The factor, as in the paper, is fixed, with or without a gain. In the released code of GPAS it is the
// initial value of a learned gain: TransformerOptions::scaled_gains with pre_ln.
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

class ScaledNorm : public PreNorm {
 public:
  ScaledNorm(int64_t width, const ConnectionOptions& options, double factor);
};

BlockConnections scaled_norm_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kLayerNormScaling{
    .name = "layer_norm_scaling", .block = scaled_norm_block, .last = last_of<PreNorm>};

}  // namespace isonorm::nn
