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

// A tile of scores: `rows` queries by `keys` keys, lines `line` elements apart. Depends on the shape alone.
struct AttentionTile {
  int64_t rows, keys, line;
};
inline AttentionTile attention_tile(int64_t queries, int64_t keys, bool causal) {
  const auto even = [](int64_t n, int64_t limit) {  // the size of the fewest equal parts of at most `limit`
    const int64_t parts = std::max<int64_t>(1, (n + limit - 1) / limit);
    return std::max<int64_t>(1, (n + parts - 1) / parts);
  };
  const int64_t k = even(keys, 512);
  return {even(queries, causal ? 64 : 128), k, (k + 15) / 16 * 16};
}
// Elements of scratch that each thread needs: one tile forward, two backward, and two numbers a row.
inline int64_t attention_scratch(const AttentionTile& t, int tiles) {
  return (tiles * t.rows * t.line + 2 * t.rows + 15) / 16 * 16;
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

// out = softmax(scale q k^T + mask) v. scratch: [threads, attention_scratch(tile, 1)].
inline constinit Kernel<void(AttentionSpec, const Tensor&, const Tensor&, const AttentionInputs&, const Tensor&)>
    attention_forward{"attention_forward", []<Isa I>() { return &cpu::attention_forward<I>; }};
// The gradients of q, k and v; scores are computed again. scratch: [threads, attention_scratch(tile, 2)].
inline constinit Kernel<void(AttentionSpec, const AttentionGradients&, const AttentionSaved&, const Tensor&)>
    attention_backward{"attention_backward", []<Isa I>() { return &cpu::attention_backward<I>; }};

}  // namespace isonorm::kernels
