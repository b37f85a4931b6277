// Slots of scaled dot-product attention that never stores a matrix of scores: tiles of it live in scratch memory,
// forward and backward.
#pragma once

#include <algorithm>

#include "core/kernel.h"
#include "core/round_up.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct AttentionSpec {
  double scale;
  bool causal;  // query i sees keys 0 .. i
};

// Tiles of scores: keys by queries, lines of queries `line` elements apart. Depends on the shape alone.
struct AttentionTile {
  static constexpr int64_t unit = 16, most = 128;  // queries of a tile: a multiple of units, at most so many
  int64_t queries, keys, tiles, line;              // of the head; keys of a tile; tiles of queries and their widest

  // Where tile t begins: as equal as can be, for a tile of one unit is slow.
  int64_t begin(int64_t t) const { return std::min(queries, ceil_div(queries, unit) * t / tiles * unit); }
};
inline AttentionTile attention_tile(int64_t queries, int64_t keys) {
  const auto parts = [](int64_t n, int64_t of) { return std::max<int64_t>(1, ceil_div(n, of)); };
  // Keys and values of a long sequence leave the cache: wider tiles read them less often.
  const int64_t tiles = parts(queries, keys > 512 ? AttentionTile::most : 64),
                units = parts(queries, AttentionTile::unit);
  return {queries, parts(keys, parts(keys, 64)), tiles, parts(units, tiles) * AttentionTile::unit};
}

// What one head is: lengths, and sizes of its rows.
struct AttentionHead {
  int64_t queries, keys, size, values;
};
// Elements of scratch that each thread needs: packed operands and sums of one head, and the tiles.
inline int64_t attention_scratch(const AttentionHead& h, bool backward) {
  const auto whole = [](int64_t n) { return round_up(n, 16); };
  const AttentionTile t = attention_tile(h.queries, h.keys);
  const int64_t size = whole(h.size), values = whole(h.values);
  if (!backward) return h.keys * values + t.line * (size + t.keys + values + 2);
  return h.keys * (2 * size + values) + t.line * (3 * size + 2 * values + 2 * t.keys + 2);
}

struct AttentionInputs {
  Tensor q, k,
      v;        // [batch, heads, time, size] of one dtype, f32 or f64; elements of a head adjacent, any other strides
  Tensor mask;  // [batch, heads, queries, keys], any strides, added to the scores; or undefined

  friend int64_t tensor_bytes(const AttentionInputs& a) { return bytes_of_all(a.q, a.k, a.v, a.mask); }
};
struct AttentionSaved {
  AttentionInputs in;
  Tensor out, lse;  // the result, and per query the logarithm of the sum of exponentials [batch, heads, queries]
  Tensor dout;      // strided like the inputs

  friend int64_t tensor_bytes(const AttentionSaved& a) { return bytes_of_all(a.in, a.out, a.lse, a.dout); }
};
struct AttentionGradients {
  Tensor dq, dk, dv;

  friend int64_t tensor_bytes(const AttentionGradients& a) { return bytes_of_all(a.dq, a.dk, a.dv); }
};

// Floating-point operations of that many products of the scores' shape per entry of a row of q and of v; a causal mask
// leaves out half.
inline int64_t attention_flops(const AttentionInputs& in, bool causal, int64_t of_size, int64_t of_values) {
  const int64_t scores = in.q.size(0) * in.q.size(1) * in.q.size(2) * in.k.size(2) / (causal ? 2 : 1);
  return 2 * scores * (of_size * in.q.size(3) + of_values * in.v.size(3));
}

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
    attention_forward{"attention_forward", []<Isa I>() { return &cpu::attention_forward<I>; },
                      [](AttentionSpec spec, const Tensor&, const Tensor&, const AttentionInputs& in, const Tensor&) {
                        return attention_flops(in, spec.causal, 1, 1);
                      }};
// The gradients of q, k and v; scores are computed again. scratch: [threads, attention_scratch(head, true)].
inline constinit Kernel<void(AttentionSpec, const AttentionGradients&, const AttentionSaved&, const Tensor&)>
    attention_backward{"attention_backward", []<Isa I>() { return &cpu::attention_backward<I>; },
                       [](AttentionSpec spec, const AttentionGradients&, const AttentionSaved& saved, const Tensor&) {
                         return attention_flops(saved.in, spec.causal, 3, 2);
                       }};

}  // namespace isonorm::kernels
