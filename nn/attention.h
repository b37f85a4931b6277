// Multi-head attention: of rows to themselves, and of a decoder's to its encoder's.
#pragma once

#include "nn/branch.h"
#include "nn/decoding/cache.h"
#include "nn/norm.h"
#include "nn/residual/arrangement.h"

namespace isonorm::nn {

struct MultiheadAttentionOptions {
  int64_t heads = 4;
  int64_t head_width = 0;  // 0: width / heads, which must divide; heads x head_width need not be the width
  int64_t kv_heads = 0;    // of keys and values, each shared by heads / kv_heads of queries (2305.13245); 0: heads
  bool causal = false;
  bool bias = true;
  bool qkv_bias = false;       // of queries, keys and values, even where there are no others (Qwen2)
  bool alibi = false;          // scores less slope x distance (2108.12409); for attention that is causal
  double rotary_base = 0;      // of rotary positions, which turn queries and keys (autograd/ops/rotary.h); 0: none
  bool rotary_halves = false;  // pairs are i and rotary_width/2 + i, not neighbours
  int64_t rotary_width = 0;    // entries of a head that are turned, the first ones; 0: all
  // Norms of each head's queries and of its keys, over its width, before they are turned (2302.05442, section 2; Qwen3):
  // layer, rms or none; with what options.
  NormKind qk_norm = NormKind::none;
  NormLayerOptions qk_norm_options = {};
  BranchOptions branch = {};
  std::optional<NormLayerOptions> inner_norm = {};  // a LayerNorm of the concatenated heads, before proj (2210.06423)
};

// torch.nn.MultiheadAttention of rows to themselves: x [batch, time, width] -> [batch, time, width].
//   nn::MultiheadAttention attention(64, {.heads = 4, .causal = true});
//   const Tensor y = attention(x);
// qkv: one linear map [(heads + 2 kv_heads) head_width, width] in the order q,
// k, v, heads contiguous inside each; q_norm and k_norm, each one for all heads; proj: a map from the concatenated heads. The
// last bias of the keys, their norm's where they have one, shifts every score of a row alike, which softmax does not see, unless
// rotary positions turn it. Throws where they are to turn an odd number of entries, or more than head_width, or where kv_heads does not divide heads.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t width, MultiheadAttentionOptions options);
  template <std::integral T>
  MultiheadAttention(int64_t width, T) : MultiheadAttention(width, MultiheadAttentionOptions{}) {
    static_assert(!std::integral<T>, "isonorm: options have names: nn::MultiheadAttention(12, {.heads = 3})");
  }
  MultiheadAttention rebuild() const { return MultiheadAttention(width_, options_); }
  using Module::operator();
  // mask: added to the scores, broadcasts to [batch, heads, time, time]; undefined: nothing is hidden.
  Tensor operator()(const Tensor& x, const Tensor& mask) { return (*this)(x, mask, nullptr); }
  // With `seen`, of causal attention without a mask: x are the rows behind those, which it takes up; behind none any number,
  // else one. The result is to rounding that of all rows at once. Throws where there are more, and with a mask.
  Tensor operator()(const Tensor& x, const Tensor& mask, KeyValues* seen);

  AttentionWeights weights() const;

 protected:
  Tensor forward(const Tensor& x) override { return (*this)(x, {}); }

 private:
  Norm* head_norm(const char* name);
  Tensor normed(const Tensor& packed) const;
  Tensor turned(const Tensor& packed, int64_t first) const;
  Tensor of_next(const Tensor& packed, KeyValues& seen) const;

  int64_t width_;
  MultiheadAttentionOptions options_;
  Linear& qkv_;
  Norm *q_norm_, *k_norm_;  // null: none, as the next one
  LayerNorm* inner_norm_;
  BranchOutput& proj_;
};

// Of a decoder's rows to an encoder's (Vaswani et al., 1706.03762, section 3.2.3): x [batch, time, width], encoded
// [batch, source, encoded_width] -> [batch, time, width]. q: a linear map [heads head_width, width]; kv: one of the encoder's
// rows [2 kv_heads head_width, encoded_width], keys before values; proj as above. Without rotary positions and norms,
// whatever the options say (2210.06423 has no norm there).
class CrossAttention : public Module {
 public:
  CrossAttention(int64_t width, int64_t encoded_width, MultiheadAttentionOptions options);
  CrossAttention rebuild() const { return CrossAttention(width_, encoded_width_, options_); }
  // mask as above, [batch, heads, time, source]. With `seen`, keys and values are computed where it is empty, and kept.
  Tensor operator()(const Tensor& x, const Tensor& encoded, const Tensor& mask, KeyValues* seen = nullptr);

  AttentionWeights weights() const;

 private:
  int64_t width_, encoded_width_;
  MultiheadAttentionOptions options_;
  Linear &q_, &kv_;
  BranchOutput& proj_;
};

}  // namespace isonorm::nn
