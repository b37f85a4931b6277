// DeepNorm, x <- LayerNorm(alpha x + branch(x)), without a norm before the head (Wang et al., 2203.00555, section 3 and
// figure 2): with N blocks, encoder or decoder alone, alpha = (2N)^(1/4), and values, attention's output and the MLP
// begin with beta = (8N)^(-1/4) times Xavier's distribution.
#pragma once

#include "nn/residual/post_norm.h"

namespace isonorm::nn {

double deep_norm_alpha(int64_t depth);
double deep_norm_beta(int64_t depth);
void initialise_deep_norm(const BlockWeights& weights, int64_t depth);

class DeepNorm : public PostNorm {
 public:
  DeepNorm(const Stream& stream, StreamNormOptions options, PostPlace place, int64_t depth);

 protected:
  Tensor shortcut(const Tensor& x) const override;

 private:
  double alpha_;
};

BlockConnections deep_norm_block(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth);

inline constexpr Arrangement kDeepNorm{.name = "deepnorm",
                                       .block = deep_norm_block,
                                       .last = bare_last,
                                       .initialise = initialise_deep_norm,
                                       .bare_entry = true};

}  // namespace isonorm::nn
