// Multi-head self-attention.
#pragma once

#include "nn/branch.h"
#include "nn/residual/connection.h"

namespace isonorm::nn {

struct AttentionOptions {
  int64_t heads = 4;
  int64_t head_width = 16;  // the inner width heads x head_width need not be the stream's width
  bool causal = false;
  bool bias = true;
  double rotary_base = 0;  // of rotary positions, which turn queries and keys (autograd/ops/rotary.h); 0: none
  BranchOptions branch = {};
};

// Rows of the stream as its connection reads them [batch, time, stored width] -> a branch of the stream. qkv: one
// reader [3 heads head_width, d], thirds in the order q, k, v, heads contiguous inside each; proj: a writer. The bias
// of the keys shifts every score of a row alike, which softmax does not see, unless rotary positions turn it. Throws
// where they meet an odd head_width.
class Attention : public Module {
 public:
  Attention(const Connection& connection, AttentionOptions options);
  Tensor forward(const Tensor& x) override;

 private:
  AttentionOptions options_;
  Linear& qkv_;
  BranchOutput& proj_;
};

}  // namespace isonorm::nn
