// Scaled dot-product attention whose memory grows with the length of the sequence, not with its square.
#pragma once

#include "core/tensor.h"

namespace isonorm {

struct AttentionOptions {
  bool causal = false;  // query i sees keys 0 .. i
  // Broadcasts to [batch, heads, queries, keys]. A mask of the inputs' dtype is added to the scores; -inf hides a key.
  // In a mask of u8, as comparisons give it, 0 hides a key, as False does in PyTorch.
  Tensor mask = {};
  double scale = 0;        // of the scores; 0 stands for 1/sqrt(size)
  bool from_last = false;  // causal is counted from the last of both: query i sees keys 0 .. i + keys - queries
};

// softmax(scale q k^T + mask) v over the last two dimensions (Vaswani et al., 1706.03762), computed in tiles (Dao et
// al., 2205.14135). q [batch, heads, queries, size], k [batch, heads, keys, size], v [batch, heads, keys, value size]
// of one floating dtype (bf16 is computed in f32), views with adjacent elements of a head are read in place -> [batch,
// heads, queries, value size], laid out in memory as [batch, queries, heads, value size]. A query that sees no key
// gives 0 and no gradient. A mask that takes a gradient runs the composition. Throws where shapes or dtypes do not
// fit.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

// Self-attention on the packed output of one projection: qkv [batch, time, 3 heads size], queries, keys and values in
// this order and heads adjacent inside each, -> [batch, time, heads size]. Neither direction copies a head. Throws as
// above. With kv_heads above 0, which divides heads, qkv is [batch, time, (heads + 2 kv_heads) size], and heads / kv_heads
// neighbouring heads of queries share one of keys and values (Ainslie et al., 2305.13245), which are repeated for them.
Tensor packed_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& options = {}, int64_t kv_heads = 0);

namespace reference {
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});
Tensor packed_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& options = {});
}  // namespace reference

}  // namespace isonorm
