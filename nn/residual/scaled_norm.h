// LayerNorm Scaling (Sun et al., 2502.05795, equation 7): Pre-LN in whose l-th block, counted from 1, the norms' results
// are multiplied by 1/sqrt(l). As in the paper the factor is fixed, with or without a gain beside it. In the released code
// of GPAS it is the initial value of a gain that is learned: TransformerOptions::scaled_gains, with pre_ln.
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// The factor is in the readers' weights, which cost less to multiply than rows: A (f n) = (f A) n.
class ScaledNorm : public PreNorm {
 public:
  ScaledNorm(const Stream& stream, StreamNormOptions options, double factor);
  Tensor reader_weight(const Tensor& weight) const override;
  Tensor reader_bias(const Tensor& weight, const Tensor& own) const override;
  double factor() const { return factor_; }

 private:
  double factor_;
};

BlockConnections scaled_norm_block(const Stream& stream, const StreamNormOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kLayerNormScaling{
    .name = "layer_norm_scaling", .block = scaled_norm_block, .last = last_of<PreNorm>};

}  // namespace isonorm::nn
