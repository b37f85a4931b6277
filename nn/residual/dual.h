// ResiDual (Xie et al., 2304.14802, section 3.1): a Post-LN residual stream x <- LayerNorm(x + branch(x)) and a second
// residual stream d <- d + branch(x), the sum of the embeddings and all branches. Only the last norm reads d: the head gets x +
// LayerNorm(d), with eps 1e-7. The paper's code scales embeddings and branches in d by s, with s = 1 except in deep
// fp16 models (s = 0.05), where d would overflow. Here s = 1: LayerNorm(s d) with eps equals LayerNorm(d) with eps/s^2,
// and no dtype that trains here has the range of fp16.
#pragma once

#include "nn/residual/post_norm.h"

namespace isonorm::nn {

class DualNorm : public PostNorm {
 public:
  using PostNorm::PostNorm;
  void join(Residual& r, const Tensor& branch) override;
};

class DualEnd : public PreNorm {
 public:
  DualEnd(int64_t width, ConnectionOptions options);
  Tensor read(Residual& r) override;
  // With gains it reads the sum of two norms' rows after their gains.
  bool reads_residual() const override { return !weight.defined(); }
};

BlockConnections residual_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kResiDual{
    .name = "residual", .block = residual_block, .last = last_of<DualEnd>, .reads_embeddings = true};

}  // namespace isonorm::nn
