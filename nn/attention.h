// Multi-head self-attention.
#pragma once

#include "nn/linear.h"
#include "nn/norm.h"

namespace isonorm::nn {

struct AttentionOptions {
  int64_t heads = 4;
  int64_t head_width = 16;  // the inner width heads x head_width need not be the stream's width
  bool causal = false;
  bool bias = true;
};

// Rows a norm made [batch, time, stored width] -> a branch of the stream. qkv: one reader [3 heads head_width, d],
// thirds in the order q, k, v, heads contiguous inside each; proj: a writer. The bias of the keys shifts every score of
// a row alike, which softmax does not see.
class Attention : public Module {
 public:
  Attention(const StreamNorm& norm, AttentionOptions options);
  Tensor forward(const Tensor& x) override;

 private:
  AttentionOptions options_;
  Linear& qkv_;
  Linear& proj_;
};

}  // namespace isonorm::nn
