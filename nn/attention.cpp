#include "nn/attention.h"

#include "autograd/fused/attention.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {
namespace {

AttentionOptions complete(AttentionOptions o) {
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  check(o.kv_heads > 0 && o.heads % o.kv_heads == 0, "attention: ", o.heads, " heads cannot share ", o.kv_heads,
        " of keys and values");
  return o;
}

}  // namespace

Attention::Attention(const Connection& connection, AttentionOptions o)
    : options_(complete(o)),
      qkv_(add("qkv", Linear(connection.stream().width(), (o.heads + 2 * options_.kv_heads) * o.head_width,
                             {.bias = o.bias, .reads = connection.maps_readers()}))),
      inner_norm_(o.inner_norm ? &add("inner_norm", LayerNorm(o.heads * o.head_width, *o.inner_norm)) : nullptr),
      proj_(add("proj", BranchOutput(o.heads * o.head_width, connection.stream(), o.bias, o.branch))) {
  check(o.rotary_base == 0 || o.head_width % 2 == 0, "attention: rotary positions turn pairs of entries, head_width ",
        o.head_width, " is odd");
  const int64_t inner = o.heads * o.head_width;
  if (o.bias && o.rotary_base == 0) qkv_.mark_blind("bias", inner, inner + options_.kv_heads * o.head_width);
}

Tensor Attention::forward(const Tensor& x) {
  Tensor qkv = qkv_(x);
  if (options_.rotary_base != 0) {
    const Dims packed = qkv.shape();
    const int64_t turned = options_.heads + options_.kv_heads;
    qkv = reshape(qkv, {packed[0], packed[1], turned + options_.kv_heads, options_.head_width});
    qkv =
        reshape(rotary(qkv, {.base = options_.rotary_base, .heads = turned, .halves = options_.rotary_halves}), packed);
  }
  const Tensor heads = packed_attention(qkv, options_.heads, {.causal = options_.causal}, options_.kv_heads);
  return proj_(inner_norm_ ? (*inner_norm_)(heads) : heads);
}

}  // namespace isonorm::nn
