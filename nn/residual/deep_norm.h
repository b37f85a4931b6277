// DeepNorm, x <- LayerNorm(alpha x + branch(x)), without a norm before the head (Wang et al., 2203.00555, section 3 and
// figure 2). Values, attention's output and the MLP begin with beta times Xavier's distribution.
//
//   blocks                                    alpha                   beta
//   encoder or decoder alone, N               (2N)^(1/4)              (8N)^(-1/4)
//   encoder of N before a decoder of M        0.81 (N^4 M)^(1/16)     0.87 (N^4 M)^(-1/16)
//   decoder of M                              (3M)^(1/4)              (12M)^(-1/4)
#pragma once

#include "nn/residual/post_norm.h"

namespace isonorm::nn {

double deep_norm_alpha(const BlockPlace& place);
double deep_norm_beta(const BlockPlace& place);
void initialise_deep_norm(const BlockWeights& weights, const BlockPlace& place);

class DeepNorm : public PostNorm {
 public:
  DeepNorm(int64_t width, ConnectionOptions options, PostPlace place, double alpha);

 protected:
  Tensor shortcut(const Tensor& x) const override;

 private:
  double alpha_;
};

BlockConnections deep_norm_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kDeepNorm{.name = "deepnorm",
                                       .block = deep_norm_block,
                                       .last = bare_last,
                                       .initialise = initialise_deep_norm,
                                       .reads_embeddings = true};

}  // namespace isonorm::nn
