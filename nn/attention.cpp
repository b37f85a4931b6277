#include "nn/attention.h"

#include "autograd/fused/attention.h"

namespace isonorm::nn {

Attention::Attention(const StreamNorm& norm, AttentionOptions o)
    : options_(o),
      qkv_(add("qkv", Linear(norm.stream().width(), 3 * o.heads * o.head_width, {.bias = o.bias, .reads = &norm}))),
      proj_(add("proj",
                Linear(o.heads * o.head_width, norm.stream().width(), {.bias = o.bias, .writes = &norm.stream()}))) {
  const int64_t inner = o.heads * o.head_width;
  if (o.bias) qkv_.mark_blind("bias", inner, 2 * inner);
}

Tensor Attention::forward(const Tensor& x) {
  return proj_(packed_attention(qkv_(x), options_.heads, {.causal = options_.causal}));
}

}  // namespace isonorm::nn
