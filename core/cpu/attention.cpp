// Attention in tiles of scores (Rabe & Staats, 2112.05682; Dao et al., 2205.14135): tiles of queries by tiles of keys,
// all inside the second-level cache. A query whose scores span several tiles keeps a running maximum and sum.
#include "core/kernels/attention.h"

#include <cmath>

#include "core/cpu/attention_tile.h"
#include "core/cpu/bf16/products.h"
#include "core/cpu/subnormals.h"
#include "core/cpu/target.h"
#include "core/formulas/math/log.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

template <class T>
void score_tile(const Problem<T>& p, const Place& at, const Head<const T>& k, const Panels<T>& qt, T* scores,
                Fetch<T>& fetch) {
  product(at.n, p.size, at.rows, T(p.spec.scale), rows_of(k, at.k), qt, 0, 0, scores, p.tile.line, {}, fetch);
  hide(p, at, scores);
}

template <class T> struct ForwardScratch {
  Panels<T> v;
  T *qt, *scores, *sums, *top, *total;
  ForwardScratch(const Problem<T>& p, T* memory) {
    Scratch<T> s{memory};
    v = s.panels(p.keys, p.values);
    qt = s.take(p.tile.line * p.size);
    scores = s.take(p.tile.keys * p.tile.line);
    sums = s.take(p.tile.line * v.width);
    top = s.take(p.tile.line);
    total = s.take(p.tile.line);
  }
};

template <class T>
void forward_tile(const Problem<T>& p, const ForwardScratch<T>& s, int64_t b, int64_t h, int64_t t,
                  const Head<const T>& q, const Head<const T>& k, Head<T> out, T* top, T* log, Fetch<T>& fetch) {
  const int64_t q0 = p.tile.begin(t), rows = p.tile.begin(t + 1) - q0, wide = s.v.width;
  const Panels<T> qt = columns_of(s.qt, q, q0, rows, p.size);
  std::fill_n(s.top, qt.width, -std::numeric_limits<T>::infinity());
  std::fill_n(s.total, qt.width, T(0));
  if (p.visible(q0 + 1) == 0) std::fill_n(s.sums, rows * wide, T(0));
  for (int64_t k0 = 0; k0 < p.visible(q0 + rows);) {
    const Place at = place(p, b, h, q0, rows, k0);
    const int64_t blind = at.q - q0;
    T* sums = s.sums + blind * wide;
    score_tile(p, at, k, columns_behind(qt, blind), s.scores, fetch);
    softmax_tile(p.tile.line, at, s.scores, s.top + blind, s.total + blind, sums, wide, fetch);
    product(at.rows, at.n, p.values, T(1), {s.scores, 1, p.tile.line}, s.v, k0, 0, sums, wide,
            {k0 > 0 ? sums : nullptr, wide}, fetch);
    k0 += at.n;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T factor = s.total[r] == 0 ? T(0) : 1 / s.total[r];
    T* to = out.row(q0 + r);
    for_lanes<T>(p.values,
                 [&](int64_t i, auto lanes) { lanes.store(to + i, lanes.load(s.sums + r * wide + i) * factor); });
  }
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    const bool blind = s.total[r] == 0;
    top[q0 + r] = blind ? T(0) : s.top[r];
    log[q0 + r] = blind ? std::numeric_limits<T>::infinity() : math::log(s.total[r]);
  }
}

template <class T> struct BackwardScratch {
  Panels<T> k;
  T *qt, *doutt, *q, *dout, *weights, *dweights, *dq, *dk, *dv, *top, *log, *along;
  BackwardScratch(const Problem<T>& p, T* memory) {
    Scratch<T> s{memory};
    const int64_t line = p.tile.line, values = whole_lanes<T>(p.values);
    k = s.panels(p.keys, p.size);
    qt = s.take(line * p.size);
    doutt = s.take(line * p.values);
    q = s.take(p.tile.line * k.width);
    dout = s.take(p.tile.line * values);
    weights = s.take(p.tile.keys * line);
    dweights = s.take(p.tile.keys * line);
    dq = s.take(p.tile.line * k.width);
    dk = s.take(p.keys * k.width);
    dv = s.take(p.keys * values);
    top = s.take(line);
    log = s.take(line);
    along = s.take(line);
  }
};

template <class T>
void copy_rows(const Head<T>& to, int64_t begin, int64_t rows, const T* from, int64_t step, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = to.row(begin + r);
    for_lanes<T>(n, [&](int64_t i, auto lanes) { lanes.store(row + i, lanes.load(from + r * step + i)); });
  }
}

// The gradients of a head. dk and dv sum over tiles of queries in order.
template <class T>
void backward_head(const Problem<T>& p, int64_t b, int64_t h, const AttentionSaved& in, const Head<T>& dq,
                   const Head<T>& dk, const Head<T>& dv, T* memory, Fetch<T>& fetch) {
  const Head<const T> q = head<T>(in.in.q, b, h), k = head<T>(in.in.k, b, h), v = head<T>(in.in.v, b, h);
  const Head<const T> out = head<T>(in.out, b, h), dout = head<T>(in.dout, b, h);
  const int64_t pair = (b * p.heads + h) * p.queries;
  const T *top = in.sums.top.data<T>() + pair, *log = in.sums.lse.data<T>() + pair;
  const BackwardScratch<T> s(p, memory);
  const int64_t line = p.tile.line, wide = s.k.width, wide_v = whole_lanes<T>(p.values);
  const T scale = T(p.spec.scale);
  pack(s.k, k.p, k.step, p.size);
  const int64_t seen = p.visible(p.queries);
  std::fill_n(s.dk + seen * wide, (p.keys - seen) * wide, T(0));
  std::fill_n(s.dv + seen * wide_v, (p.keys - seen) * wide_v, T(0));
  for (int64_t t = 0; t < p.tile.tiles; ++t) {
    const int64_t q0 = p.tile.begin(t), rows = p.tile.begin(t + 1) - q0;
    const Panels<T> qt = columns_of(s.qt, q, q0, rows, p.size), doutt = columns_of(s.doutt, dout, q0, rows, p.values);
    const Panels<T> qs{s.q, rows, wide}, douts{s.dout, rows, wide_v};
    pack(qs, q.row(q0), q.step, p.size);
    pack(douts, dout.row(q0), dout.step, p.values);
    for (T* numbers : {s.top, s.log, s.along}) std::fill_n(numbers, qt.width, T(0));
    std::copy_n(top + q0, rows, s.top);
    std::copy_n(log + q0, rows, s.log);
    if (p.visible(q0 + 1) == 0) std::fill_n(s.dq, rows * wide, T(0));
    for (int64_t r = 0; r < rows; ++r) {  // <dP, P> = <dout, out>
      const T *d = dout.row(q0 + r), *o = out.row(q0 + r);
      s.along[r] = sum_row<T, 1>(p.values, [&](int64_t i, auto lanes, Vec<T>* acc) {
        acc[0] += lanes.keep(lanes.load(d + i)) * lanes.load(o + i);
      })[0];
    }
    for (int64_t k0 = 0; k0 < p.visible(q0 + rows);) {
      const Place at = place(p, b, h, q0, rows, k0);
      const int64_t blind = at.q - q0;
      const bool first = t == 0 || (p.spec.causal && k0 >= q0 + p.spec.ahead);  // true: the first tile with these keys
      T *dq_rows = s.dq + blind * wide, *dk_rows = s.dk + k0 * wide, *dv_rows = s.dv + k0 * wide_v;
      score_tile(p, at, k, columns_behind(qt, blind), s.weights, fetch);
      product(at.n, p.values, at.rows, T(1), rows_of(v, k0), columns_behind(doutt, blind), 0, 0, s.dweights, line, {},
              fetch);
      softmax_gradient(p.tile.line, at, s.weights, s.dweights, s.top + blind, s.log + blind, s.along + blind, fetch);
      product(at.n, at.rows, p.values, T(1), {s.weights, line, 1}, douts, blind, 0, dv_rows, wide_v,
              {first ? nullptr : dv_rows, wide_v}, fetch);
      product(at.rows, at.n, p.size, scale, {s.dweights, 1, line}, s.k, k0, 0, dq_rows, wide,
              {k0 > 0 ? dq_rows : nullptr, wide}, fetch);
      product(at.n, at.rows, p.size, scale, {s.dweights, line, 1}, qs, blind, 0, dk_rows, wide,
              {first ? nullptr : dk_rows, wide}, fetch);
      k0 += at.n;
    }
    copy_rows(dq, q0, rows, s.dq, wide, p.size);
  }
  copy_rows(dk, 0, p.keys, s.dk, wide, p.size);
  copy_rows(dv, 0, p.keys, s.dv, wide_v, p.values);
}

template <class T>
void forward(AttentionSpec spec, const Tensor& out, const AttentionSums& sums, const AttentionInputs& in) {
  const Problem<T> p(spec, in);
  T *po = out.mutable_data<T>(), *top = sums.top.mutable_data<T>(), *log = sums.lse.mutable_data<T>();
  const int64_t each = p.scratch(false);
  const Workspace<T> scratch(num_threads() * each);
  // If there are few heads, their queries are divided into parts, and each part packs the values for itself.
  const int64_t pairs = in.q.size(0) * p.heads, tiles = p.tile.tiles;
  const int64_t parts = std::clamp<int64_t>(8 / std::max<int64_t>(1, pairs), 1, tiles);
  parallel_for(pairs * parts, worth_sharing(p, parts), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t pair = i / parts, part = i % parts, b = pair / p.heads, h = pair % p.heads;
      const ForwardScratch<T> s(p, scratch.data() + thread_index() * each);
      const Head<const T> q = head<T>(in.q, b, h), k = head<T>(in.k, b, h), v = head<T>(in.v, b, h);
      const Head<T> o = head_of(po, out, b, h);
      Fetch<T> fetch;
      fetch.add(out, pair);
      for (const Tensor* x : {&in.v, &in.q, &in.k}) fetch.add(*x, pair + 1);
      pack(s.v, v.p, v.step, p.values);
      for (int64_t t = tiles * part / parts; t < tiles * (part + 1) / parts; ++t)
        forward_tile(p, s, b, h, t, q, k, o, top + pair * p.queries, log + pair * p.queries, fetch);
    }
  });
}

template <class T> void backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in) {
  const Problem<T> p(spec, in.in);
  T *dq = out.dq.mutable_data<T>(), *dk = out.dk.mutable_data<T>(), *dv = out.dv.mutable_data<T>();
  const int64_t each = p.scratch(true);
  const Workspace<T> scratch(num_threads() * each);
  parallel_for(in.in.q.size(0) * p.heads, worth_sharing(p, 1), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / p.heads, h = i % p.heads;
      Fetch<T> fetch;
      for (const Tensor* x : {&out.dq, &out.dk, &out.dv}) fetch.add(*x, i);
      for (const Tensor* x : {&in.in.k, &in.in.q, &in.dout, &in.out, &in.in.v}) fetch.add(*x, i + 1);
      backward_head(p, b, h, in, head_of(dq, out.dq, b, h), head_of(dk, out.dk, b, h), head_of(dv, out.dv, b, h),
                    scratch.data() + thread_index() * each, fetch);
    }
  });
}

}  // namespace

template <Isa I>
void attention_forward(AttentionSpec spec, const Tensor& out, const AttentionSums& sums, const AttentionInputs& in) {
  if constexpr (kTarget == Isa::avx512)
    if (in.q.dtype() == DType::bf16) return attention_forward_bf16(spec, out, sums, in);
  in.q.dtype() == DType::f64 ? forward<double>(spec, out, sums, in) : forward<float>(spec, out, sums, in);
}

template <Isa I> void attention_backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in) {
  if constexpr (kTarget == Isa::avx512)
    if (in.dout.dtype() == DType::bf16) return attention_backward_bf16(spec, out, in);
  in.dout.dtype() == DType::f64 ? backward<double>(spec, out, in) : backward<float>(spec, out, in);
}

template void attention_forward<kTarget>(AttentionSpec, const Tensor&, const AttentionSums&, const AttentionInputs&);
template void attention_backward<kTarget>(AttentionSpec, const AttentionGradients&, const AttentionSaved&);

}  // namespace isonorm::kernels::cpu
