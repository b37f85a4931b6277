// Multi-head self-attention.
#pragma once

#include "nn/branch.h"
#include "nn/norm.h"

namespace isonorm::nn {

struct AttentionOptions {
  int64_t heads = 4;
  int64_t head_width = 16;  // the inner width heads x head_width need not be the stream's width
  int64_t kv_heads = 0;     // of keys and values, each shared by heads / kv_heads of queries (2305.13245); 0: heads
  bool causal = false;
  bool bias = true;
  double rotary_base = 0;      // of rotary positions, which turn queries and keys (autograd/ops/rotary.h); 0: none
  bool rotary_halves = false;  // pairs are i and head_width/2 + i, not neighbours
  BranchOptions branch = {};
  std::optional<NormLayerOptions> inner_norm = {};  // a LayerNorm of the concatenated heads, before proj (2210.06423)
};

// Rows of the stream as its connection reads them [batch, time, stored width] -> a branch of the stream. qkv: one
// reader [(heads + 2 kv_heads) head_width, d] in the order q, k, v, heads contiguous inside each; proj: a writer. The
// bias of the keys shifts every score of a row alike, which softmax does not see, unless rotary positions turn it.
// Throws where they meet an odd head_width, or where kv_heads does not divide heads.
class Attention : public Module {
 public:
  Attention(const Connection& connection, AttentionOptions options);
  Tensor forward(const Tensor& x) override;

  Linear& qkv() const { return qkv_; }
  int64_t inner_width() const { return options_.heads * options_.head_width; }
  Linear& proj() const { return proj_; }

 private:
  AttentionOptions options_;
  Linear& qkv_;
  LayerNorm* inner_norm_;  // null: none
  BranchOutput& proj_;
};

}  // namespace isonorm::nn
