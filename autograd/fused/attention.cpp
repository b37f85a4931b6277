#include "autograd/fused/attention.h"

#include <cmath>
#include <limits>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/kernels/attention.h"
#include "core/kernels/matmul.h"
#include "core/view.h"

namespace isonorm {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr const char *kHeads = "scaled_dot_product_attention", *kPacked = "packed_attention";

double scale_of(const AttentionOptions& o, int64_t size) {
  return o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, size)));
}

// [batch, heads, time, size] over memory of [batch, time, heads, size].
Tensor heads_inside(const Dims& s, TensorOptions options) {
  return detached::transpose(empty({s[0], s[2], s[1], s[3]}, options), 1, 2);
}

// x without graph, copied unless the elements of a row are adjacent.
Tensor unit_stride(const Tensor& x) { return x.strides()[3] == 1 ? detach(x) : detached::contiguous(x); }

// Writes the result to `out` (any strides with adjacent elements). Returns the row sums; the backward recomputes the
// attention weights with them. No graph.
kernels::AttentionSums run_forward(kernels::AttentionSpec spec, const Tensor& out, const kernels::AttentionInputs& in) {
  const auto numbers = [&] {
    return empty({in.q.size(0), in.q.size(1), in.q.size(2)}, {acc_dtype(in.q.dtype()), in.q.device()});
  };
  const kernels::AttentionSums sums{in.q.dtype() == DType::bf16 ? Tensor() : numbers(), numbers()};
  if (out.numel() > 0 || sums.lse.numel() > 0) kernels::attention_forward.on(out.device(), spec, out, sums, in);
  return sums;
}

kernels::AttentionSpec spec_of(const AttentionOptions& o, int64_t size, int64_t queries, int64_t keys) {
  return {scale_of(o, size), o.causal, o.from_last ? keys - queries : 0};
}

// The options of a spec, for the composition.
AttentionOptions options_of(const kernels::AttentionSpec& spec, const Tensor& mask) {
  return {.causal = spec.causal, .mask = mask, .scale = spec.scale, .from_last = spec.ahead != 0};
}

// The mask for inputs like q, expanded to [batch, heads, queries, keys] without a copy; undefined if there is none.
Tensor full_mask(const char* op, const AttentionOptions& o, const Dims& scores, const Tensor& q) {
  if (!o.mask.defined()) return {};
  check_same_device(op, q, o.mask);
  check(o.mask.dtype() == q.dtype(), op, ": the mask is ", o.mask.dtype(), ", the inputs ", q.dtype());
  check(broadcast_shapes(o.mask.shape(), scores, op) == scores, op, ": mask ", o.mask.shape(),
        " does not stretch to the scores ", scores);
  return detached::expand(o.mask, scores);
}

bool hides_by_u8(const AttentionOptions& o) { return o.mask.defined() && o.mask.dtype() == DType::u8; }
// Turns a mask of u8 into numbers to add to scores of this dtype: 0 if an entry is not 0, else -inf.
AttentionOptions additive(AttentionOptions o, DType dtype) {
  o.mask = where(o.mask, 0, full({}, kHidden, {dtype, o.mask.device()}));
  return o;
}

void check_inputs(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  check_same_device(op, q, k, v);
  check(is_floating(q.dtype()), op, ": dtype is ", q.dtype(), ", expected f32, f64 or bf16");
  check(q.dtype() == k.dtype() && q.dtype() == v.dtype(), op, ": dtypes of q, k, v differ: ", q.dtype(), ", ",
        k.dtype(), ", ", v.dtype());
  check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, op, ": shapes ", q.shape(), ", ", k.shape(), ", ", v.shape(),
        ", expected [batch, heads, time, size] each");
  const bool fits = q.size(0) == k.size(0) && q.size(1) == k.size(1) && q.size(3) == k.size(3) &&
                    k.size(0) == v.size(0) && k.size(1) == v.size(1) && k.size(2) == v.size(2);
  check(fits, op, ": q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(), " do not fit each other");
}

AttentionOptions in_f32(AttentionOptions o) {
  if (o.mask.defined()) o.mask = to(o.mask, DType::f32);
  return o;
}

// Queries, keys and values as [batch, heads, time, size] views of a packed [batch, time, 3 heads size] tensor.
kernels::AttentionInputs unpack(const Tensor& packed, int64_t heads) {
  const int64_t b = packed.size(0), t = packed.size(1), width = packed.size(2), size = width / (3 * heads);
  const auto part = [&](int i) {
    return as_strided(packed, {b, heads, t, size}, {t * width, size, width, 1},
                      packed.impl().offset + i * heads * size);
  };
  return {part(0), part(1), part(2), {}};
}

}  // namespace

Tensor reference::scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                               const AttentionOptions& o) {
  check_inputs(kHeads, q, k, v);
  if (hides_by_u8(o)) return reference::scaled_dot_product_attention(q, k, v, additive(o, q.dtype()));
  Tensor scores = mul(matmul(q, transpose(k, -1, -2)), scale_of(o, q.size(3)));
  if (o.mask.defined()) scores = add(scores, o.mask);
  if (o.causal) {
    Tensor hidden = empty({q.size(2), k.size(2)}, q.options());
    fill(hidden, kHidden);
    scores = add(scores, triu(hidden, 1 + (o.from_last ? k.size(2) - q.size(2) : 0)));
  }
  if (k.size(2) == 0) return matmul(softmax(scores), v);
  const Tensor blind = eq(amax(detach(scores), {-1}, true), kHidden), zero = zeros({}, scores.options());
  return matmul(where(blind, zero, softmax(where(blind, zero, scores))), v);
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  check_inputs(kHeads, q, k, v);
  if (hides_by_u8(o)) return scaled_dot_product_attention(q, k, v, additive(o, q.dtype()));
  const Tensor mask = full_mask(kHeads, o, {q.size(0), q.size(1), q.size(2), k.size(2)}, q);
  if (use_reference() || (o.mask.defined() && requires_grad(o.mask)))
    return reference::scaled_dot_product_attention(q, k, v, o);
  if (q.dtype() == DType::bf16 && !kernels::bf16_products(q.device()))
    return detail::refuse_second_gradient(
        kHeads, to(scaled_dot_product_attention(to(q, DType::f32), to(k, DType::f32), to(v, DType::f32), in_f32(o)),
                   DType::bf16));
  const kernels::AttentionSpec spec = spec_of(o, q.size(3), q.size(2), k.size(2));
  const kernels::AttentionInputs in{unit_stride(q), unit_stride(k), unit_stride(v), mask};
  Tensor out = heads_inside({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options());
  const kernels::AttentionSums sums = run_forward(spec, out, in);
  if (auto* n = track(kHeads, {&out}, {&q, &k, &v}))
    n->backward = differentiable([spec, q = save_activation(in.q), k = save_activation(in.k), v = save_activation(in.v),
                                  mask = save(in.mask), out = save_activation(out), sums](Flow& g) {
      if (g.needs_composition())
        return g.follow({reference::scaled_dot_product_attention(g.attached(0, q), g.attached(1, k), g.attached(2, v),
                                                                 options_of(spec, mask.data()))});
      const kernels::AttentionSaved saved{{q, k, v, mask}, out, sums, unit_stride(g.out())};
      const auto like = [&](const Tensor& t) { return heads_inside(t.shape(), t.options()); };
      const kernels::AttentionGradients d{like(saved.in.q), like(saved.in.k), like(saved.in.v)};
      kernels::attention_backward.on(saved.dout.device(), spec, d, saved);
      g.give(0, d.dq);
      g.give(1, d.dk);
      g.give(2, d.dv);
    });
  return out;
}

Tensor reference::packed_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& o) {
  const int64_t b = qkv.size(0), t = qkv.size(1), width = qkv.size(2) / 3;
  const Tensor parts = permute(reshape(qkv, {b, t, 3, heads, width / heads}), {2, 0, 3, 1, 4});
  const Tensor out =
      reference::scaled_dot_product_attention(select(parts, 0, 0), select(parts, 0, 1), select(parts, 0, 2), o);
  return reshape(transpose(out, 1, 2), {b, t, width});
}

namespace {

Tensor grouped_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& o, int64_t kv_heads) {
  check(kv_heads > 0 && heads % kv_heads == 0 && qkv.rank() == 3 && qkv.size(2) % (heads + 2 * kv_heads) == 0, kPacked,
        ": input ", qkv.shape(), " does not divide into [batch, time, (", heads, " + 2 x ", kv_heads,
        " heads) x size], or ", kv_heads, " heads of keys do not divide ", heads, " of queries");
  const int64_t b = qkv.size(0), t = qkv.size(1), size = qkv.size(2) / (heads + 2 * kv_heads), group = heads / kv_heads;
  const Tensor parts = transpose(reshape(qkv, {b, t, heads + 2 * kv_heads, size}), 1, 2);
  const auto repeated = [&](int64_t first) { return repeat_interleave(narrow(parts, 1, first, kv_heads), group, 1); };
  const Tensor out =
      scaled_dot_product_attention(narrow(parts, 1, 0, heads), repeated(heads), repeated(heads + kv_heads), o);
  return reshape(transpose(out, 1, 2), {b, t, heads * size});
}

}  // namespace

Tensor packed_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& o, int64_t kv_heads) {
  check(is_floating(qkv.dtype()), kPacked, ": dtype is ", qkv.dtype(), ", expected f32, f64 or bf16");
  if (hides_by_u8(o)) return packed_attention(qkv, heads, additive(o, qkv.dtype()), kv_heads);
  if (kv_heads != 0 && kv_heads != heads) return grouped_attention(qkv, heads, o, kv_heads);
  check(qkv.rank() == 3 && heads > 0 && qkv.size(2) % 3 == 0 && qkv.size(2) / 3 % heads == 0, kPacked, ": input ",
        qkv.shape(), " does not divide into [batch, time, 3 x ", heads, " heads x size]");
  const int64_t b = qkv.size(0), t = qkv.size(1), width = qkv.size(2) / 3;
  const Tensor mask = full_mask(kPacked, o, {b, heads, t, t}, qkv);
  if (use_reference() || (o.mask.defined() && requires_grad(o.mask))) return reference::packed_attention(qkv, heads, o);
  if (qkv.dtype() == DType::bf16 && !kernels::bf16_products(qkv.device()))
    return detail::refuse_second_gradient(kPacked,
                                          to(packed_attention(to(qkv, DType::f32), heads, in_f32(o)), DType::bf16));
  const kernels::AttentionSpec spec = spec_of(o, width / heads, t, t);
  const Tensor packed = detached::contiguous(qkv);
  Tensor out = empty({b, t, width}, qkv.options());
  const auto by_head = [=](const Tensor& x) {
    return detached::transpose(detached::reshape(x, {b, t, heads, width / heads}), 1, 2);
  };
  kernels::AttentionInputs in = unpack(packed, heads);
  in.mask = mask;
  const kernels::AttentionSums sums = run_forward(spec, by_head(out), in);
  if (auto* n = track(kPacked, {&out}, {&qkv}))
    n->backward =
        differentiable([=, packed = save_activation(packed), mask = save(mask), out = save_activation(out)](Flow& g) {
          if (g.needs_composition())
            return g.follow({reference::packed_attention(g.attached(0, packed), heads, options_of(spec, mask.data()))});
          const Tensor qkv = packed, dqkv = empty_like(qkv);
          const kernels::AttentionInputs d = unpack(dqkv, heads);
          kernels::AttentionInputs in = unpack(qkv, heads);
          in.mask = mask;
          kernels::attention_backward.on(qkv.device(), spec, {d.q, d.k, d.v},
                                         {in, by_head(out), sums, by_head(detached::contiguous(g.out()))});
          g.give(0, dqkv);
        });
  return out;
}

}  // namespace isonorm
