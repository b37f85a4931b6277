// Multi-head self-attention and cross-attention.
#pragma once

#include "nn/branch.h"
#include "nn/kv_cache.h"
#include "nn/norm.h"
#include "nn/residual/arrangement.h"

namespace isonorm::nn {

struct MultiheadAttentionOptions {
  int64_t heads = 4;
  int64_t head_width = 0;  // 0: width / heads, which must divide. heads x head_width may differ from width.
  int64_t kv_heads = 0;    // key/value heads, each used by heads / kv_heads query heads (GQA, 2305.13245); 0: heads
  bool causal = false;
  bool bias = true;
  bool qkv_bias = false;       // biases for queries, keys and values even if bias is false (Qwen2)
  bool alibi = false;          // adds -slope x distance to the scores (2108.12409); requires causal
  double rotary_base = 0;      // base of rotary position embeddings (autograd/ops/rotary.h); 0: no rotary embeddings
  bool rotary_halves = false;  // rotates pairs (i, rotary_width/2 + i) instead of neighbours
  int64_t rotary_width = 0;    // number of leading entries of each head that are rotated; 0: all
  // Norms of each head's queries and keys over head_width, before the rotation (2302.05442, section 2; Qwen3): layer,
  // rms or none.
  NormKind qk_norm = NormKind::none;
  NormLayerOptions qk_norm_options = {};
  BranchOptions branch = {};
  std::optional<NormLayerOptions> inner_norm = {};  // a LayerNorm of the concatenated heads, before proj (2210.06423)
};

// Self-attention, like torch.nn.MultiheadAttention with query = key = value. x [batch, time, width] -> [batch, time,
// width].
//   nn::MultiheadAttention attention(64, {.heads = 4, .causal = true});
//   const Tensor y = attention(x);
//
// Layers:
//   qkv             Linear, weight [(heads + 2 kv_heads) head_width, width], rows ordered q, k, v, each by head
//   q_norm, k_norm  norms over head_width, each shared by all heads (only with qk_norm)
//   proj            BranchOutput from the concatenated heads to width
//
// Without rotary embeddings the last bias of the keys (with qk_norm, k_norm's) has gradient zero: it adds the same
// number to all scores of a query, and softmax ignores that. Throws if kv_heads does not divide heads, or if
// rotary_width is odd or larger than head_width.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t width, MultiheadAttentionOptions options);
  template <std::integral T>
  MultiheadAttention(int64_t width, T) : MultiheadAttention(width, MultiheadAttentionOptions{}) {
    static_assert(!std::integral<T>, "isonorm: options have names: nn::MultiheadAttention(12, {.heads = 3})");
  }
  MultiheadAttention rebuild() const { return MultiheadAttention(width_, options_); }
  using Module::operator();
  // mask: added to the scores, broadcasts to [batch, heads, time, time]. Undefined: all keys are visible.
  // cache: for causal attention; x holds only the new tokens: any number if the cache is empty, else one. Their keys and
  // values are appended. Equals attention over the whole sequence up to rounding. Throws if x has more tokens, if mask
  // is defined, or if the attention is not causal.
  Tensor operator()(const Tensor& x, const Tensor& mask, KeyValues* cache = nullptr);

  AttentionWeights weights() const;

 protected:
  Tensor forward(const Tensor& x) override { return (*this)(x, {}); }

 private:
  Norm* head_norm(const char* name);
  Tensor normalize_queries_and_keys(const Tensor& packed) const;
  Tensor rotate_queries_and_keys(const Tensor& packed, int64_t first_position) const;
  Tensor attend_one_token(const Tensor& packed, KeyValues& cache) const;

  int64_t width_;
  MultiheadAttentionOptions options_;
  Linear& qkv_;
  Norm *q_norm_, *k_norm_;  // null if there is none, like inner_norm_
  LayerNorm* inner_norm_;
  BranchOutput& proj_;
};

// Attention of a decoder to its encoder's output (Vaswani et al., 1706.03762, section 3.2.3): x [batch, time, width],
// encoded [batch, source, encoded_width] -> [batch, time, width].
//
// Layers:
//   q     Linear, weight [heads head_width, width]
//   kv    Linear of the encoder's output, weight [2 kv_heads head_width, encoded_width], keys before values
//   proj  as in MultiheadAttention
//
// There is no causal mask, position embedding or norm, whatever the options say (2210.06423 has no norm there).
class CrossAttention : public Module {
 public:
  CrossAttention(int64_t width, int64_t encoded_width, MultiheadAttentionOptions options);
  CrossAttention rebuild() const { return CrossAttention(width_, encoded_width_, options_); }
  // mask: as above, [batch, heads, time, source]. With a cache, keys and values are computed once, when it is empty,
  // and kept.
  Tensor operator()(const Tensor& x, const Tensor& encoded, const Tensor& mask, KeyValues* cache = nullptr);

  AttentionWeights weights() const;

 private:
  int64_t width_, encoded_width_;
  MultiheadAttentionOptions options_;
  Linear &q_, &kv_;
  BranchOutput& proj_;
};

}  // namespace isonorm::nn
