// Scaled dot-product attention whose memory grows linearly with the sequence length, not quadratically.
#pragma once

#include "core/tensor.h"

namespace isonorm {

struct AttentionOptions {
  bool causal = false;  // query i sees keys 0 .. i
  // Broadcasts to [batch, heads, queries, keys]. A mask of the inputs' dtype is added to the scores; -inf hides a key.
  // In a u8 mask, such as a comparison gives, 0 hides a key, like False in PyTorch.
  Tensor mask = {};
  double scale = 0;        // factor of the scores; 0: 1/sqrt(size)
  bool from_last = false;  // causal from the last positions: query i sees keys 0 .. i + keys - queries
};

// softmax(scale q k^T + mask) v over the last two dimensions (Vaswani et al., 1706.03762), computed in tiles (Dao et
// al., 2205.14135).
//
// q [batch, heads, queries, size], k [batch, heads, keys, size], v [batch, heads, keys, value size] of the same
// floating dtype (bf16 is computed in f32) -> [batch, heads, queries, value size], laid out in memory as [batch,
// queries, heads, value size]. Views are read in place if the elements of a head are adjacent. A query that sees no key
// gives 0 and no gradient. If the mask takes a gradient, the composition runs. Throws if shapes or dtypes do not fit.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

// Self-attention on the packed output of a projection: qkv [batch, time, 3 heads size], with queries, keys and values
// in this order and the heads adjacent within each, -> [batch, time, heads size]. Neither forward nor backward copies a
// head. Throws as above.
//
// kv_heads > 0: grouped-query attention (Ainslie et al., 2305.13245). kv_heads divides heads, qkv is [batch, time,
// (heads + 2 kv_heads) size], and heads / kv_heads neighbouring query heads share one head of keys and values, which is
// copied for each query head.
Tensor packed_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& options = {}, int64_t kv_heads = 0);

namespace reference {
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});
Tensor packed_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& options = {});
}  // namespace reference

}  // namespace isonorm
