#include "nn/attention.h"

#include <bit>

#include "autograd/fused/attention.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "nn/module_scope.h"

namespace isonorm::nn {
namespace {

MultiheadAttentionOptions complete(MultiheadAttentionOptions o, int64_t width) {
  check(o.heads > 0 && (o.head_width > 0 || (o.head_width == 0 && width % o.heads == 0)), "attention: width ", width,
        " does not divide into ", o.heads, " heads of width ", o.head_width);
  if (o.head_width == 0) o.head_width = width / o.heads;
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  o.qkv_bias = o.qkv_bias || o.bias;
  if (o.rotary_width == 0) o.rotary_width = o.head_width;
  check(o.kv_heads > 0 && o.heads % o.kv_heads == 0, "attention: ", o.heads, " heads cannot share ", o.kv_heads,
        " of keys and values");
  return o;
}

// The slopes of ALiBi, [heads]: 2^(-8 i / heads) for head i = 1, 2, ... If heads is no power of 2: the slopes of the
// next smaller power, then every second slope of the next larger one (Press et al., 2108.12409, section 3 and their
// code).
Tensor alibi_slopes(int64_t heads, TensorOptions options) {
  const auto above = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(heads)));
  const Tensor all = exp2((arange(0, static_cast<double>(above), 1, options) + 1) * (-8 / static_cast<double>(above)));
  if (above == heads) return all;
  return cat({slice(all, 0, 1, above, 2), narrow(slice(all, 0, 0, above, 2), 0, 0, heads - above / 2)}, 0);
}

// ALiBi's addition to the scores of `keys` keys, [1, heads, 1, keys]: slope x key position, counted so that the last
// key has 0. Per query this is -slope x distance plus a constant, which softmax ignores.
Tensor alibi(int64_t heads, int64_t keys, TensorOptions options) {
  const Tensor last_first = arange(1 - static_cast<double>(keys), 1, 1, options);
  return reshape(alibi_slopes(heads, options), {1, heads, 1, 1}) * last_first;
}

Tensor in_dtype(const Tensor& mask, DType dtype) { return mask.defined() ? mask.to(dtype) : mask; }

// `n` rows of a weight from row `first`. Writes to them go to the weight.
Tensor rows_of(const Linear& linear, int64_t first, int64_t n) {
  return detached::narrow(detach(linear.weight), 0, first, n);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t width, MultiheadAttentionOptions o)
    : width_(width),
      options_(complete(o, width)),
      qkv_(add("qkv", Linear(width, (options_.heads + 2 * options_.kv_heads) * options_.head_width,
                             {.bias = options_.qkv_bias}))),
      q_norm_(head_norm("q_norm")),
      k_norm_(head_norm("k_norm")),
      inner_norm_(o.inner_norm ? &add("inner_norm", LayerNorm(options_.heads * options_.head_width, *o.inner_norm))
                               : nullptr),
      proj_(add("proj", BranchOutput(options_.heads * options_.head_width, width, o.bias, o.branch))) {
  check(!o.alibi || o.causal, "attention: ALiBi needs causal attention");
  const int64_t turned = options_.rotary_width;
  check(o.rotary_base == 0 || (turned % 2 == 0 && turned <= options_.head_width),
        "attention: rotary positions rotate pairs of entries, here ", turned, " of head_width ", options_.head_width);
  const int64_t inner = options_.heads * options_.head_width;
  if (o.rotary_base != 0) return;
  if (k_norm_ && k_norm_->bias.defined()) k_norm_->mark_blind("bias", 0, options_.head_width);
  if (options_.qkv_bias && !k_norm_) qkv_.mark_blind("bias", inner, inner + options_.kv_heads * options_.head_width);
}

Norm* MultiheadAttention::head_norm(const char* name) {
  const NormKind kind = options_.qk_norm;
  const NormLayerOptions& o = options_.qk_norm_options;
  check(kind == NormKind::none || kind == NormKind::layer || kind == NormKind::rms, "attention: ", name, " is ",
        name_of(kind), ", expected layer_norm, rms_norm or none");
  if (kind == NormKind::none) return nullptr;
  return &add(name, Norm(options_.head_width, {.kind = kind, .eps = o.eps}, o));
}

Tensor MultiheadAttention::operator()(const Tensor& input, const Tensor& mask, KeyValues* cache) {
  const ModuleScope scope(*this);
  check(!cache || (options_.causal && !mask.defined()), "attention: a KV cache needs causal attention without a mask");
  return with_hooks(input, [&](const Tensor& x) {
    const int64_t cached = cache ? cache->time() : 0, shared = options_.kv_heads;
    const Tensor qkv = rotate_queries_and_keys(normalize_queries_and_keys(qkv_(x)), cached);
    Tensor heads;
    if (cached > 0) {
      heads = attend_one_token(qkv, *cache);
    } else {
      Tensor bias = in_dtype(mask, qkv.dtype());
      if (options_.alibi) {
        const Tensor slopes = alibi(options_.heads, x.size(1), qkv.options());
        bias = bias.defined() ? bias + slopes : slopes;
      }
      heads = packed_attention(qkv, options_.heads, {.causal = options_.causal, .mask = bias}, shared);
      if (cache) {
        const Tensor parts =
            transpose(reshape(qkv, {x.size(0), x.size(1), options_.heads + 2 * shared, options_.head_width}), 1, 2);
        cache->append(narrow(parts, 1, options_.heads, shared), narrow(parts, 1, options_.heads + shared, shared));
      }
    }
    return proj_(inner_norm_ ? (*inner_norm_)(heads) : heads);
  });
}

// Normalizes the queries and keys of packed rows [batch, time, (heads + 2 kv_heads) head_width].
Tensor MultiheadAttention::normalize_queries_and_keys(const Tensor& packed) const {
  if (!q_norm_) return packed;
  const int64_t heads = options_.heads, shared = options_.kv_heads;
  const Tensor rows = reshape(packed, {packed.size(0), packed.size(1), heads + 2 * shared, options_.head_width});
  const Tensor q = (*q_norm_)(narrow(rows, 2, 0, heads)), k = (*k_norm_)(narrow(rows, 2, heads, shared));
  return reshape(cat({q, k, narrow(rows, 2, heads + shared, shared)}, 2), packed.shape());
}

// Rotates the queries and keys of packed rows by their positions, from first_position on.
Tensor MultiheadAttention::rotate_queries_and_keys(const Tensor& packed, int64_t first_position) const {
  if (options_.rotary_base == 0) return packed;
  const int64_t turning = options_.heads + options_.kv_heads;
  const Tensor rows =
      reshape(packed, {packed.size(0), packed.size(1), turning + options_.kv_heads, options_.head_width});
  const RotaryOptions o{
      .base = options_.rotary_base, .heads = turning, .first = first_position, .halves = options_.rotary_halves};
  const int64_t width = options_.rotary_width, rest = options_.head_width - width;
  if (rest == 0) return reshape(rotary(rows, o), packed.shape());
  return reshape(cat({rotary(narrow(rows, -1, 0, width), o), narrow(rows, -1, width, rest)}, -1), packed.shape());
}

// Attention output [batch, 1, heads head_width] for one new token, using the KV cache. Query heads that share a key
// head become rows in one matrix.
Tensor MultiheadAttention::attend_one_token(const Tensor& packed, KeyValues& cache) const {
  const int64_t batch = packed.size(0), heads = options_.heads, shared = options_.kv_heads, size = options_.head_width;
  check(packed.size(1) == 1, "attention: ", packed.size(1), " new tokens after ", cache.time(),
        " in the KV cache, expected 1");
  const Tensor parts = transpose(reshape(packed, {batch, 1, heads + 2 * shared, size}), 1, 2);
  cache.append(narrow(parts, 1, heads, shared), narrow(parts, 1, heads + shared, shared));
  const Tensor queries = reshape(narrow(parts, 1, 0, heads), {batch, shared, heads / shared, size});
  const Tensor bias = options_.alibi
                          ? reshape(alibi(heads, cache.time(), queries.options()), {1, shared, heads / shared, -1})
                          : Tensor();
  return reshape(scaled_dot_product_attention(queries, cache.keys, cache.values, {.mask = bias}),
                 {batch, 1, heads * size});
}

AttentionWeights MultiheadAttention::weights() const {
  const int64_t inner = options_.heads * options_.head_width, shared = options_.kv_heads * options_.head_width;
  return {rows_of(qkv_, 0, inner), rows_of(qkv_, inner, shared), rows_of(qkv_, inner + shared, shared),
          detach(proj_.weight)};
}

CrossAttention::CrossAttention(int64_t width, int64_t encoded_width, MultiheadAttentionOptions o)
    : width_(width),
      encoded_width_(encoded_width),
      options_(complete(o, width)),
      q_(add("q", Linear(width, options_.heads * options_.head_width, {.bias = options_.qkv_bias}))),
      kv_(add("kv", Linear(encoded_width, 2 * options_.kv_heads * options_.head_width, {.bias = options_.qkv_bias}))),
      proj_(add("proj", BranchOutput(options_.heads * options_.head_width, width, o.bias, o.branch))) {
  if (options_.qkv_bias) kv_.mark_blind("bias", 0, options_.kv_heads * options_.head_width);
}

Tensor CrossAttention::operator()(const Tensor& input, const Tensor& encoded, const Tensor& mask, KeyValues* cache) {
  const ModuleScope scope(*this);
  return with_hooks(input, [&](const Tensor& x) {
    const int64_t batch = x.size(0), heads = options_.heads, shared = options_.kv_heads, size = options_.head_width;
    const auto by_head = [&](const Tensor& rows, int64_t n) {  // [batch, n, time, size]
      return transpose(reshape(rows, {batch, rows.size(1), n, size}), 1, 2);
    };
    KeyValues uncached;
    KeyValues& source = cache ? *cache : uncached;
    if (source.time() == 0) {
      const Tensor kv = by_head(kv_(encoded), 2 * shared);
      source.append(narrow(kv, 1, 0, shared), narrow(kv, 1, shared, shared));
    }
    const Tensor q = by_head(q_(x), heads);
    const auto for_queries = [&](const Tensor& of_keys) {
      return shared == heads ? of_keys : repeat_interleave(of_keys, heads / shared, 1);
    };
    const Tensor y = scaled_dot_product_attention(q, for_queries(source.keys), for_queries(source.values),
                                                  {.mask = in_dtype(mask, q.dtype())});
    return proj_(reshape(transpose(y, 1, 2), {batch, x.size(1), heads * size}));
  });
}

AttentionWeights CrossAttention::weights() const {
  const int64_t inner = options_.heads * options_.head_width, shared = options_.kv_heads * options_.head_width;
  return {rows_of(q_, 0, inner), rows_of(kv_, 0, shared), rows_of(kv_, shared, shared), detach(proj_.weight)};
}

}  // namespace isonorm::nn
