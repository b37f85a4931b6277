// Slots of scaled dot-product attention that never stores a matrix of scores: tiles of it live in scratch memory,
// forward and backward.
#pragma once

#include <algorithm>

#include "core/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct AttentionSpec {
  double scale;
  bool causal;  // query i sees keys 0 .. i
};

// A tile of scores: `rows` queries by `keys` keys, lines `line` elements apart. Depends on the shape alone. Some 50 to
// 100 KB in f32.
struct AttentionTile {
  int64_t rows, keys, line;
};
inline AttentionTile attention_tile(int64_t queries, int64_t keys) {
  const int64_t k = std::clamp<int64_t>(keys, 1, 512), line = (k + 15) / 16 * 16;
  return {std::clamp<int64_t>(queries, 1, std::clamp<int64_t>(12288 / line / 24 * 24, 48, 96)), k, line};
}

// What one head is: lengths, and sizes of its rows.
struct AttentionHead {
  int64_t queries, keys, size, values;
};
// Elements of scratch that each thread needs: packed operands and sums of one head, and the tiles.
inline int64_t attention_scratch(const AttentionHead& h, bool backward) {
  const auto whole = [](int64_t n) { return (n + 15) / 16 * 16; };
  const AttentionTile t = attention_tile(h.queries, h.keys);
  const int64_t keys = whole(h.keys), queries = whole(h.queries), size = whole(h.size), values = whole(h.values);
  const int64_t forward = keys * (size + values) + t.rows * (t.line + values) + 2 * whole(t.rows);
  return backward ? forward + keys * (2 * size + 2 * values) + queries * (size + values) + t.rows * (t.line + size)
                  : forward;
}

struct AttentionInputs {
  Tensor q, k,
      v;        // [batch, heads, time, size] of one dtype, f32 or f64; elements of a head adjacent, any other strides
  Tensor mask;  // [batch, heads, queries, keys], any strides, added to the scores; or undefined
};
struct AttentionSaved {
  AttentionInputs in;
  Tensor out, lse;  // the result, and per query the logarithm of the sum of exponentials [batch, heads, queries]
  Tensor dout;      // strided like the inputs
};
struct AttentionGradients {
  Tensor dq, dk, dv;
};

namespace cpu {
template <Isa I>
void attention_forward(AttentionSpec spec, const Tensor& out, const Tensor& lse, const AttentionInputs& in,
                       const Tensor& scratch);
template <Isa I>
void attention_backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in,
                        const Tensor& scratch);
}  // namespace cpu

// out = softmax(scale q k^T + mask) v. scratch: [threads, attention_scratch(head, false)].
inline constinit Kernel<void(AttentionSpec, const Tensor&, const Tensor&, const AttentionInputs&, const Tensor&)>
    attention_forward{"attention_forward", []<Isa I>() { return &cpu::attention_forward<I>; }};
// The gradients of q, k and v; scores are computed again. scratch: [threads, attention_scratch(head, true)].
inline constinit Kernel<void(AttentionSpec, const AttentionGradients&, const AttentionSaved&, const Tensor&)>
    attention_backward{"attention_backward", []<Isa I>() { return &cpu::attention_backward<I>; }};

}  // namespace isonorm::kernels
