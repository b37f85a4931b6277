// Kernel slots (kernel.h) of scaled dot-product attention, forward and backward. They never store a matrix of scores.
#pragma once

#include <algorithm>

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct AttentionSpec {
  double scale;
  bool causal;        // query i sees keys 0 .. i + ahead
  int64_t ahead = 0;  // may be negative

  // Number of keys that queries before `end` see.
  int64_t visible(int64_t end, int64_t keys) const { return causal ? std::clamp<int64_t>(end + ahead, 0, keys) : keys; }
};

struct AttentionInputs {
  Tensor q, k, v;  // [batch, heads, time, size], f32, f64 or, if bf16_products(), bf16; elements of a head are adjacent
  Tensor mask;     // [batch, heads, queries, keys], any strides, added to the scores; or undefined

  static auto tensors(auto& s) { return std::tie(s.q, s.k, s.v, s.mask); }
};
// Softmax sums of each query [batch, heads, queries], in acc dtype: its weights are e^((score - top) - lse). They are
// two numbers because their sum would round off the fraction when scores are large. If a query sees no key, top is 0
// and lse is infinite.
struct AttentionSums {
  Tensor top;  // the largest score. Undefined for bf16, whose weights are rounded anyway; it then counts as 0
  Tensor lse;  // the logarithm of the sum of e^(score - top)

  static auto tensors(auto& s) { return std::tie(s.top, s.lse); }
};
struct AttentionSaved {
  AttentionInputs in;
  Tensor out;
  AttentionSums sums;
  Tensor dout;  // strided like the inputs

  static auto tensors(auto& s) { return std::tie(s.in, s.out, s.sums, s.dout); }
};
struct AttentionGradients {
  Tensor dq, dk, dv;

  static auto tensors(auto& s) { return std::tie(s.dq, s.dk, s.dv); }
};

// Floating-point operations of `of_size` matrix products of the scores' shape over the head size of q, and of
// `of_values` over the head size of v. A causal mask halves them.
inline int64_t attention_flops(const AttentionInputs& in, bool causal, int64_t of_size, int64_t of_values) {
  const int64_t scores = in.q.size(0) * in.q.size(1) * in.q.size(2) * in.k.size(2) / (causal ? 2 : 1);
  return 2 * scores * (of_size * in.q.size(3) + of_values * in.v.size(3));
}

namespace cpu {
template <Isa I>
void attention_forward(AttentionSpec spec, const Tensor& out, const AttentionSums& sums, const AttentionInputs& in);
template <Isa I> void attention_backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in);
}  // namespace cpu

// out = softmax(scale q k^T + mask) v; 0 for a query that sees no key.
inline constinit Kernel<void(AttentionSpec, const Tensor&, const AttentionSums&, const AttentionInputs&)>
    attention_forward{"attention_forward", []<Isa I>() { return &cpu::attention_forward<I>; },
                      [](AttentionSpec spec, const Tensor&, const AttentionSums&, const AttentionInputs& in) {
                        return attention_flops(in, spec.causal, 1, 1);
                      }};
// The gradients of q, k and v. Recomputes the scores.
inline constinit Kernel<void(AttentionSpec, const AttentionGradients&, const AttentionSaved&)> attention_backward{
    "attention_backward", []<Isa I>() { return &cpu::attention_backward<I>; },
    [](AttentionSpec spec, const AttentionGradients&, const AttentionSaved& saved) {
      return attention_flops(saved.in, spec.causal, 3, 2);
    }};

// Slot of rotary position embeddings: rotates pairs of elements by an angle that depends on their position.

// Contiguous x viewed as [outer, time, heads, size]. The first `turned` heads are rotated, the others copied.
struct RotaryShape {
  int64_t outer, time, heads, size, turned;
  bool back;    // rotates by the negative angle: the transposed map
  bool halves;  // pairs are (i, size/2 + i), else (2i, 2i + 1)
};

namespace cpu {
template <Isa I>
void rotary(RotaryShape shape, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine);
}

// y[2i] = x[2i] c - x[2i+1] s, y[2i+1] = x[2i] s + x[2i+1] c, or the same for i and size/2 + i. cosine, sine [time,
// size/2] have the dtype that x is computed in.
inline constinit Kernel<void(RotaryShape, const Tensor&, const Tensor&, const Tensor&, const Tensor&)> rotary{
    "rotary", []<Isa I>() { return &cpu::rotary<I>; }};

}  // namespace isonorm::kernels
