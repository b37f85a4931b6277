// ResiDual (Xie et al., 2304.14802, section 3.1): a Post-LN stream, x <- LayerNorm(x + branch(x)), and beside it the sum
// d <- d + branch(x) of the embeddings and all branches, which no norm meets but the last: the head reads x +
// LayerNorm(d), with eps 1e-7. The paper's code adds s branch(x) to s times the embeddings, s = 1 but for s = 0.05 in deep
// models of fp16, whose range d would leave. Here s = 1: LayerNorm(s d) with eps is LayerNorm(d) with eps/s^2, and no dtype
// here has fp16's range.
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
  // Behind gains it reads a sum of two rows of d entries.
  bool reads_stream() const override { return !weight.defined(); }
};

BlockConnections residual_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kResiDual{
    .name = "residual", .block = residual_block, .last = last_of<DualEnd>, .bare_entry = true};

}  // namespace isonorm::nn
