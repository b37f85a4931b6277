// bf16 attention in the tiles of core/cpu/attention.cpp: products of pairs with f32 sums, and softmax in f32. Weights
// and gradients of scores are rounded to bf16 before a product reads them.
#include "core/cpu/bf16/products.h"

#include "core/cpu/attention_tile.h"
#include "core/cpu/bf16/gemm.h"
#include "core/cpu/subnormals.h"
#include "core/cpu/target.h"
#include "core/formulas/math/log.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

using Tiles = Problem<float, bf16>;

// Divides a thread's scratch memory into parts, counted in words of 32 bits. If base is null, it only counts.
struct Words {
  float* base;
  int64_t used = 0;
  template <class W = float> W* take(int64_t n) {
    const int64_t at = std::exchange(used, used + round_up(n, 16));
    return base ? reinterpret_cast<W*>(base + at) : nullptr;
  }
  Panels<Pair> panels(int64_t depth, int64_t width) {
    const int64_t pairs = ceil_div(depth, 2), whole = whole_lanes<Pair>(width);
    return {take<Pair>(pairs * whole), pairs, whole};
  }
};

// Rows of x in the form that products read: in place or, if the size is odd, copied with a zero at the end.
struct EvenRows {
  bf16* memory;
  int64_t size;
  EvenRows(Words& s, int64_t rows, int64_t size)
      : memory(size % 2 != 0 ? s.take<bf16>(rows * (size + 1) / 2) : nullptr), size(size) {}
  Head<const bf16> of(const Head<const bf16>& x, int64_t rows) const {
    if (!memory) return x;
    const int64_t step = size + 1;
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(x.row(r), size, memory + r * step);
      memory[r * step + size] = 0;
    }
    return {memory, step};
  }
};

Panels<Pair> columns(const Panels<Pair>& room, const Head<const bf16>& x, int64_t q, int64_t rows, int64_t size) {
  const Panels<Pair> to{room.p, room.depth, whole_lanes<Pair>(rows)};
  pack_columns(to, x.row(q), x.step, size, rows);
  return to;
}
Panels<Pair> rows_packed(const Panels<Pair>& room, const Head<const bf16>& x, int64_t q, int64_t rows, int64_t size) {
  const Panels<Pair> to{room.p, ceil_div(rows, 2), room.width};
  pack_rows(to, x.row(q), x.step, rows, size);
  return to;
}

// tile [at.n keys, line] = alpha k queries^T.
void meet(const Tiles& p, const Place& at, float alpha, const Head<const bf16>& k, const Panels<Pair>& queries,
          float* tile) {
  pair_product(at.n, queries.depth, at.rows, alpha, {k.row(at.k), k.step, 2}, queries, 0, {tile, false, p.tile.line},
               {});
}

// A tile of f32 as the left operand of products. by_queries(): pairs of keys, in lines of queries. by_keys(): the line
// of each key, with zeros after the queries.
Strided<bf16> by_queries(const Tiles& p, const Place& at, const float* tile, Pair* to) {
  const int64_t line = p.tile.line;
  for (int64_t j = 0; j < at.n; j += 2)
    for (int64_t i = 0; i < at.rows; i += 16) {
      const auto bits = [&](int64_t key) { return widen(round_to_bf16(load_lanes<float>(tile + key * line + i))); };
      const Vec<Pair> second = j + 1 < at.n ? bits(j + 1) : Vec<Pair>{};
      store_lanes<Pair>(to + j / 2 * line + i, bits(j) | second << 16);
    }
  return {reinterpret_cast<const bf16*>(to), 2, 2 * line};
}
Strided<bf16> by_keys(const Tiles& p, const Place& at, const float* tile, bf16* to) {
  const int64_t line = p.tile.line;
  for (int64_t j = 0; j < at.n; ++j)
    for_masked(at.rows, [&](int64_t i, __mmask16 mask) {
      const __m256i bits = round_to_bf16(load_lanes<float>(tile + j * line + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j * line + i), _mm256_maskz_mov_epi16(mask, bits));
    });
  return {to, line, 2};
}

// Writes rows of sums to a head from row `begin` on, times factor(row).
template <class F>
void write_rows(const Head<bf16>& to, int64_t begin, int64_t rows, const float* from, int64_t step, int64_t n,
                const F& factor) {
  for (int64_t r = 0; r < rows; ++r) {
    const float f = factor(r);
    for_masked(n, [&](int64_t i, __mmask16 mask) {
      store_masked(to.row(begin + r) + i, load_masked(from + r * step + i, mask) * f, mask);
    });
  }
}
float once(int64_t) { return 1; }

struct ForwardScratch {
  Panels<Pair> v, qt;
  EvenRows k;
  Pair* weights;
  float *scores, *sums, *top, *total;
  ForwardScratch(const Tiles& p, Words& s)
      : v(s.panels(p.keys, p.values)),
        qt(s.panels(p.size, p.tile.line)),
        k(s, p.keys, p.size),
        weights(s.take<Pair>(ceil_div(p.tile.keys, 2) * p.tile.line)),
        scores(s.take(p.tile.keys * p.tile.line)),
        sums(s.take(p.tile.line * v.width)),
        top(s.take(p.tile.line)),
        total(s.take(p.tile.line)) {}
};

void forward_tile(const Tiles& p, const ForwardScratch& s, int64_t b, int64_t h, int64_t t, const Head<const bf16>& q,
                  const Head<const bf16>& k, const Head<bf16>& out, float* lse, Fetch<bf16>& fetch) {
  const int64_t q0 = p.tile.begin(t), rows = p.tile.begin(t + 1) - q0, wide = s.v.width;
  const Panels<Pair> qt = columns(s.qt, q, q0, rows, p.size);
  std::fill_n(s.top, qt.width, -std::numeric_limits<float>::infinity());
  std::fill_n(s.total, qt.width, 0.f);
  if (p.visible(q0 + 1) == 0) std::fill_n(s.sums, rows * wide, 0.f);
  for (int64_t k0 = 0; k0 < p.visible(q0 + rows);) {
    const Place at = place(p, b, h, q0, rows, k0);
    const int64_t blind = at.q - q0;
    float* sums = s.sums + blind * wide;
    meet(p, at, static_cast<float>(p.spec.scale), k, columns_behind(qt, blind), s.scores);
    hide(p, at, s.scores);
    softmax_tile(p.tile.line, at, s.scores, s.top + blind, s.total + blind, sums, wide, fetch);
    const Rows to(sums, false, wide);
    pair_product(at.rows, ceil_div(at.n, 2), p.values, 1, by_queries(p, at, s.scores, s.weights), s.v, k0 / 2, to,
                 k0 > 0 ? to : Rows());
    k0 += at.n;
  }
  write_rows(out, q0, rows, s.sums, wide, p.values, [&](int64_t r) { return s.total[r] == 0 ? 0.f : 1 / s.total[r]; });
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r)
    lse[q0 + r] = s.total[r] == 0 ? std::numeric_limits<float>::infinity() : s.top[r] + math::log(s.total[r]);
}

struct BackwardScratch {
  Panels<Pair> k, qt, doutt, q, dout;
  EvenRows k_rows, v_rows;
  Pair* by_queries;
  bf16* by_keys;
  float *weights, *dweights, *dq, *dk, *dv, *top, *lse, *along;
  int64_t wide_v;
  BackwardScratch(const Tiles& p, Words& s)
      : k(s.panels(p.keys, p.size)),
        qt(s.panels(p.size, p.tile.line)),
        doutt(s.panels(p.values, p.tile.line)),
        q(s.panels(p.tile.line, p.size)),
        dout(s.panels(p.tile.line, p.values)),
        k_rows(s, p.keys, p.size),
        v_rows(s, p.keys, p.values),
        by_queries(s.take<Pair>(ceil_div(p.tile.keys, 2) * p.tile.line)),
        by_keys(s.take<bf16>(p.tile.keys * p.tile.line / 2)),
        weights(s.take(p.tile.keys * p.tile.line)),
        dweights(s.take(p.tile.keys * p.tile.line)),
        dq(s.take(p.tile.line * k.width)),
        dk(s.take(p.keys * k.width)),
        dv(s.take(p.keys * dout.width)),
        top(s.take(p.tile.line)),
        lse(s.take(p.tile.line)),
        along(s.take(p.tile.line)),
        wide_v(dout.width) {}
};

// The gradients of a head. dk and dv sum over tiles of queries in order.
void backward_head(const Tiles& p, int64_t b, int64_t h, const AttentionSaved& in, const Head<bf16>& dq,
                   const Head<bf16>& dk, const Head<bf16>& dv, const BackwardScratch& s, Fetch<bf16>& fetch) {
  const Head<const bf16> q = head<bf16>(in.in.q, b, h), out = head<bf16>(in.out, b, h),
                         dout = head<bf16>(in.dout, b, h);
  const Head<const bf16> k = s.k_rows.of(head<bf16>(in.in.k, b, h), p.keys);
  const Head<const bf16> v = s.v_rows.of(head<bf16>(in.in.v, b, h), p.keys);
  const float *lse = in.sums.lse.data<float>() + (b * p.heads + h) * p.queries,
              scale = static_cast<float>(p.spec.scale);
  const int64_t line = p.tile.line, wide = s.k.width, wide_v = s.wide_v;
  pack_rows(s.k, k.p, k.step, p.keys, p.size);
  std::fill_n(s.dk, p.keys * wide, 0.f);
  std::fill_n(s.dv, p.keys * wide_v, 0.f);
  std::fill_n(s.top, line, 0.f);
  for (int64_t t = 0; t < p.tile.tiles; ++t) {
    const int64_t q0 = p.tile.begin(t), rows = p.tile.begin(t + 1) - q0;
    const Panels<Pair> qt = columns(s.qt, q, q0, rows, p.size), doutt = columns(s.doutt, dout, q0, rows, p.values);
    const Panels<Pair> qs = rows_packed(s.q, q, q0, rows, p.size),
                       douts = rows_packed(s.dout, dout, q0, rows, p.values);
    for (float* numbers : {s.lse, s.along}) std::fill_n(numbers, qt.width, 0.f);
    std::copy_n(lse + q0, rows, s.lse);
    if (p.visible(q0 + 1) == 0) std::fill_n(s.dq, rows * wide, 0.f);
    for (int64_t r = 0; r < rows; ++r) {  // <dP, P> = <dout, out>
      const bf16 *d = dout.row(q0 + r), *o = out.row(q0 + r);
      s.along[r] = sum_row<float, 1>(p.values, [&](int64_t i, auto lanes, Vec<float>* acc) {
        acc[0] += lanes.keep(lanes.load(d + i)) * lanes.load(o + i);
      })[0];
    }
    for (int64_t k0 = 0; k0 < p.visible(q0 + rows);) {
      const Place at = place(p, b, h, q0, rows, k0);
      const int64_t blind = at.q - q0, keys = ceil_div(at.n, 2), queries = ceil_div(at.rows, 2);
      const Rows dq_rows(s.dq + blind * wide, false, wide), dk_rows(s.dk + k0 * wide, false, wide),
          dv_rows(s.dv + k0 * wide_v, false, wide_v);
      meet(p, at, scale, k, columns_behind(qt, blind), s.weights);
      hide(p, at, s.weights);
      meet(p, at, 1, v, columns_behind(doutt, blind), s.dweights);
      softmax_gradient(line, at, s.weights, s.dweights, s.top, s.lse + blind, s.along + blind, fetch);
      pair_product(at.n, queries, p.values, 1, by_keys(p, at, s.weights, s.by_keys), douts, blind / 2, dv_rows,
                   dv_rows);
      pair_product(at.n, queries, p.size, scale, by_keys(p, at, s.dweights, s.by_keys), qs, blind / 2, dk_rows,
                   dk_rows);
      pair_product(at.rows, keys, p.size, scale, by_queries(p, at, s.dweights, s.by_queries), s.k, k0 / 2, dq_rows,
                   k0 > 0 ? dq_rows : Rows());
      k0 += at.n;
    }
    write_rows(dq, q0, rows, s.dq, wide, p.size, once);
  }
  write_rows(dk, 0, p.keys, s.dk, wide, p.size, once);
  write_rows(dv, 0, p.keys, s.dv, wide_v, p.values, once);
}

// Words of scratch memory that each thread needs.
template <class Room> int64_t words_of(const Tiles& p) {
  Words count{nullptr};
  Room(p, count);
  return count.used;
}

}  // namespace

void attention_forward_bf16(AttentionSpec spec, const Tensor& out, const AttentionSums& sums,
                            const AttentionInputs& in) {
  const Tiles p(spec, in);
  bf16* const po = out.mutable_data<bf16>();
  float* const lse = sums.lse.mutable_data<float>();
  const int64_t each = words_of<ForwardScratch>(p);
  const Workspace<float> scratch(num_threads() * each);
  // As in f32: if there are few heads, their queries are divided into parts.
  const int64_t pairs = in.q.size(0) * p.heads, tiles = p.tile.tiles;
  const int64_t parts = std::clamp<int64_t>(8 / std::max<int64_t>(1, pairs), 1, tiles);
  parallel_for(pairs * parts, worth_sharing(p, parts), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<float> flush;
    Words words{scratch.data() + thread_index() * each};
    const ForwardScratch s(p, words);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t pair = i / parts, part = i % parts, b = pair / p.heads, h = pair % p.heads;
      const Head<const bf16> q = head<bf16>(in.q, b, h), v = head<bf16>(in.v, b, h);
      const Head<const bf16> k = s.k.of(head<bf16>(in.k, b, h), p.keys);
      Fetch<bf16> fetch;
      fetch.add(out, pair);
      for (const Tensor* x : {&in.v, &in.q, &in.k}) fetch.add(*x, pair + 1);
      pack_rows(s.v, v.p, v.step, p.keys, p.values);
      for (int64_t t = tiles * part / parts; t < tiles * (part + 1) / parts; ++t)
        forward_tile(p, s, b, h, t, q, k, head_of(po, out, b, h), lse + pair * p.queries, fetch);
    }
  });
}

void attention_backward_bf16(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in) {
  const Tiles p(spec, in.in);
  bf16 *const dq = out.dq.mutable_data<bf16>(), *const dk = out.dk.mutable_data<bf16>();
  bf16* const dv = out.dv.mutable_data<bf16>();
  const int64_t each = words_of<BackwardScratch>(p);
  const Workspace<float> scratch(num_threads() * each);
  parallel_for(in.in.q.size(0) * p.heads, worth_sharing(p, 1), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<float> flush;
    Words words{scratch.data() + thread_index() * each};
    const BackwardScratch s(p, words);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / p.heads, h = i % p.heads;
      Fetch<bf16> fetch;
      for (const Tensor* x : {&out.dq, &out.dk, &out.dv}) fetch.add(*x, i);
      for (const Tensor* x : {&in.in.k, &in.in.q, &in.dout, &in.out, &in.in.v}) fetch.add(*x, i + 1);
      backward_head(p, b, h, in, head_of(dq, out.dq, b, h), head_of(dk, out.dk, b, h), head_of(dv, out.dv, b, h), s,
                    fetch);
    }
  });
}

}  // namespace isonorm::kernels::cpu
