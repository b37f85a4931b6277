// Attention in tiles of scores (Rabe & Staats, 2112.05682; Dao et al., 2205.14135). A head's keys and values are packed
// once; then tiles of queries meet tiles of keys, all inside the second-level cache. A row of scores that spans several
// tiles keeps a running maximum and sum.
#include "core/kernels/attention.h"

#include <cmath>

#include "core/cpu/softmax_row.h"
#include "core/cpu/target.h"
#include "core/cpu/tile_product.h"
#include "core/math/log.h"
#include "core/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// One head of a [batch, heads, time, size] tensor: rows of adjacent elements, `step` apart.
template <class T> struct Head {
  T* p;
  int64_t step;
  T* row(int64_t t) const { return p + t * step; }
};
// Head (b, h) of a tensor whose data begin at `base` (null where it is empty).
template <class T> Head<T> head_of(T* base, const Tensor& t, int64_t b, int64_t h) {
  return {base ? base + b * t.strides()[0] + h * t.strides()[1] : nullptr, t.strides()[2]};
}
template <class T> Head<const T> head(const Tensor& t, int64_t b, int64_t h) { return head_of(t.data<T>(), t, b, h); }
template <class T> Strided<T> rows_of(const Head<const T>& x, int64_t t) { return {x.row(t), x.step, 1}; }

// What all tiles of a call share.
template <class T> struct Problem {
  AttentionSpec spec;
  int64_t heads, queries, keys, size, values;
  AttentionTile tile;
  const T* mask = nullptr;
  Dims mask_strides;

  Problem(AttentionSpec s, const AttentionInputs& in)
      : spec(s),
        heads(in.q.size(1)),
        queries(in.q.size(2)),
        keys(in.k.size(2)),
        size(in.q.size(3)),
        values(in.v.size(3)),
        tile(attention_tile(queries, keys)) {
    if (!in.mask.defined()) return;
    mask = in.mask.data<T>();
    mask_strides = in.mask.strides();
  }

  // Keys that the queries [.., end) see.
  int64_t visible(int64_t end) const { return spec.causal ? std::min(keys, end) : keys; }
};

// Hands out the parts of a thread's scratch memory.
template <class T> struct Scratch {
  T* p;
  T* take(int64_t n) { return std::exchange(p, p + whole_lanes<T>(n)); }
  Panels<T> panels(int64_t depth, int64_t width) {
    return {take(depth * whole_lanes<T>(width)), depth, whole_lanes<T>(width)};
  }
};

// A tile: queries [q, q + rows) by keys [k, k + columns) of head (b, h).
struct Place {
  int64_t b, h, q, rows, k, columns;
};

// scores = scale q k^T + mask.
template <class T>
void score_tile(const Problem<T>& p, const Place& at, const Head<const T>& q, const Panels<T>& kt, T* scores) {
  product(at.rows, p.size, at.columns, T(p.spec.scale), rows_of(q, at.q), kt, 0, at.k, scores, p.tile.line);
  if (!p.mask) return;
  const Dims& s = p.mask_strides;
  const T* mask = p.mask + at.b * s[0] + at.h * s[1] + at.q * s[2] + at.k * s[3];
  for (int64_t r = 0; r < at.rows; ++r)
    for (int64_t j = 0; j < at.columns; ++j) scores[r * p.tile.line + j] += mask[r * s[2] + j * s[3]];
}

// How many columns of the tile row r sees.
template <class T> int64_t seen(const Problem<T>& p, const Place& at, int64_t r) {
  return p.spec.causal ? std::clamp<int64_t>(at.q + r + 1 - at.k, 0, at.columns) : at.columns;
}

// Turns the scores of a tile into e^(score - top), top the running maximum of the row, and updates the running sums.
// Loops over rows are kept apart and short, so that the processor works on several rows at a time.
template <class T>
void softmax_tile(const Problem<T>& p, const Place& at, T* scores, T* top, T* total, T* sums, int64_t wide) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  const int64_t line = p.tile.line;
  for (int64_t r = 0; r < at.rows; ++r) {
    const T* row = scores + r * line;
    Vec<T> best = splat<T>(top[r]);
    for_seen<T>(seen(p, at, r), [&](int64_t i, auto lanes) {
      const Vec<T> v = lanes.hide(load_lanes<T>(row + i));
      best = v > best ? v : best;
    });
    const T highest = max_lanes<T>(best);
    if (at.k > 0) {
      const T correction = highest == lowest ? T(1) : std::exp(top[r] - highest);
      total[r] *= correction;
      for (int64_t i = 0; i < wide; ++i) sums[r * wide + i] *= correction;
    }
    top[r] = highest;
  }
  for (int64_t r = 0; r < at.rows; ++r) {
    T* row = scores + r * line;
    const int64_t n = seen(p, at, r);
    // A row of which nothing is visible yet keeps its sum of 0; at the end that gives NaN, as a softmax of -inf only
    // does.
    const T shift = top[r] == lowest ? T(0) : top[r];
    Vec<T> sum{};
    for_seen<T>(n, [&](int64_t i, auto lanes) {
      const Vec<T> e = exp_lanes<T>(lanes.hide(load_lanes<T>(row + i)) - shift);
      store_lanes<T>(row + i, e);
      sum += e;
    });
    total[r] += sum_lanes<T>(sum);
    for (int64_t j = whole_lanes<T>(n); j < at.columns; ++j) row[j] = T(0);
  }
}

template <class T> struct ForwardScratch {
  Panels<T> kt, v;
  T *scores, *sums, *top, *total;
  ForwardScratch(const Problem<T>& p, T* memory) {
    Scratch<T> s{memory};
    kt = s.panels(p.size, p.keys);
    v = s.panels(p.keys, p.values);
    scores = s.take(p.tile.rows * p.tile.line);
    sums = s.take(p.tile.rows * v.width);
    top = s.take(p.tile.rows);
    total = s.take(p.tile.rows);
  }
};

template <class T>
void forward_tile(const Problem<T>& p, const ForwardScratch<T>& s, int64_t b, int64_t h, int64_t q0,
                  const Head<const T>& q, Head<T> out, T* lse) {
  const int64_t rows = std::min(p.tile.rows, p.queries - q0), visible = p.visible(q0 + rows), wide = s.v.width;
  std::fill_n(s.top, rows, -std::numeric_limits<T>::infinity());
  std::fill_n(s.total, rows, T(0));
  if (p.keys == 0) std::fill_n(s.sums, rows * wide, T(0));
  for (int64_t k0 = 0; k0 < visible; k0 += p.tile.keys) {
    const Place at{b, h, q0, rows, k0, std::min(p.tile.keys, visible - k0)};
    score_tile(p, at, q, s.kt, s.scores);
    softmax_tile(p, at, s.scores, s.top, s.total, s.sums, wide);
    product(rows, at.columns, p.values, T(1), {s.scores, p.tile.line, 1}, s.v, k0, 0, s.sums, wide,
            {k0 > 0 ? s.sums : nullptr, wide});
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T factor = p.keys == 0 ? T(0) : 1 / s.total[r];
    T* to = out.row(q0 + r);
    for_lanes<T>(p.values,
                 [&](int64_t i, auto lanes) { lanes.store(to + i, lanes.load(s.sums + r * wide + i) * factor); });
  }
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) lse[q0 + r] = s.top[r] + math::log(s.total[r]);
}

template <class T> struct BackwardScratch {
  Panels<T> kt, vt, k, q, dout;
  T *weights, *dweights, *dq, *dk, *dv, *along;
  BackwardScratch(const Problem<T>& p, T* memory) {
    Scratch<T> s{memory};
    kt = s.panels(p.size, p.keys);
    vt = s.panels(p.values, p.keys);
    k = s.panels(p.keys, p.size);
    q = s.panels(p.queries, p.size);
    dout = s.panels(p.queries, p.values);
    weights = s.take(p.tile.rows * p.tile.line);
    dweights = s.take(p.tile.rows * p.tile.line);
    dq = s.take(p.tile.rows * k.width);
    dk = s.take(p.keys * k.width);
    dv = s.take(p.keys * dout.width);
    along = s.take(p.tile.rows);
  }
};

template <class T>
void copy_rows(const Head<T>& to, int64_t begin, int64_t rows, const T* from, int64_t step, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = to.row(begin + r);
    for_lanes<T>(n, [&](int64_t i, auto lanes) { lanes.store(row + i, lanes.load(from + r * step + i)); });
  }
}

// The gradients of one head. dk and dv sum over tiles of queries in order.
template <class T>
void backward_head(const Problem<T>& p, int64_t b, int64_t h, const AttentionSaved& in, const Head<T>& dq,
                   const Head<T>& dk, const Head<T>& dv, T* memory) {
  const Head<const T> q = head<T>(in.in.q, b, h), k = head<T>(in.in.k, b, h), v = head<T>(in.in.v, b, h);
  const Head<const T> out = head<T>(in.out, b, h), dout = head<T>(in.dout, b, h);
  const T* lse = in.lse.data<T>() + (b * p.heads + h) * p.queries;
  const BackwardScratch<T> s(p, memory);
  pack_transposed(s.kt, k.p, k.step, p.keys);
  pack_transposed(s.vt, v.p, v.step, p.keys);
  pack(s.k, k.p, k.step, p.size);
  pack(s.q, q.p, q.step, p.size);
  pack(s.dout, dout.p, dout.step, p.values);
  const int64_t line = p.tile.line, wide = s.k.width, wide_v = s.dout.width;
  const T scale = T(p.spec.scale);
  std::fill_n(s.dk, p.keys * wide, T(0));
  std::fill_n(s.dv, p.keys * wide_v, T(0));
  if (p.keys == 0) std::fill_n(s.dq, p.tile.rows * wide, T(0));
  for (int64_t q0 = 0; q0 < p.queries; q0 += p.tile.rows) {
    const int64_t rows = std::min(p.tile.rows, p.queries - q0), visible = p.visible(q0 + rows);
    // The gradient of a softmax row needs <dP, P> = <dout, out>.
    for (int64_t r = 0; r < rows; ++r) {
      const T *d = dout.row(q0 + r), *o = out.row(q0 + r);
      s.along[r] = sum_row<T, 1>(p.values, [&](int64_t i, auto lanes, Vec<T>* acc) {
        acc[0] += lanes.keep(lanes.load(d + i)) * lanes.load(o + i);
      })[0];
    }
    for (int64_t k0 = 0; k0 < visible; k0 += p.tile.keys) {
      const Place at{b, h, q0, rows, k0, std::min(p.tile.keys, visible - k0)};
      score_tile(p, at, q, s.kt, s.weights);
      product(rows, p.values, at.columns, T(1), rows_of(dout, q0), s.vt, 0, k0, s.dweights, line);
      for (int64_t r = 0; r < rows; ++r) {
        T *w = s.weights + r * line, *dw = s.dweights + r * line;
        const T shift = lse[q0 + r], mean = s.along[r];
        const int64_t n = seen(p, at, r);
        for_seen<T>(n, [&](int64_t i, auto lanes) {
          const Vec<T> e = exp_lanes<T>(lanes.hide(load_lanes<T>(w + i)) - shift);
          store_lanes<T>(w + i, e);
          store_lanes<T>(dw + i, e * (load_lanes<T>(dw + i) - mean));
        });
        for (int64_t j = whole_lanes<T>(n); j < at.columns; ++j) w[j] = dw[j] = T(0);
      }
      product(at.columns, rows, p.values, T(1), {s.weights, 1, line}, s.dout, q0, 0, s.dv + k0 * wide_v, wide_v,
              {s.dv + k0 * wide_v, wide_v});
      product(rows, at.columns, p.size, scale, {s.dweights, line, 1}, s.k, k0, 0, s.dq, wide,
              {k0 > 0 ? s.dq : nullptr, wide});
      product(at.columns, rows, p.size, scale, {s.dweights, 1, line}, s.q, q0, 0, s.dk + k0 * wide, wide,
              {s.dk + k0 * wide, wide});
    }
    copy_rows(dq, q0, rows, s.dq, wide, p.size);
  }
  copy_rows(dk, 0, p.keys, s.dk, wide, p.size);
  copy_rows(dv, 0, p.keys, s.dv, wide_v, p.values);
}

template <class T>
void forward(AttentionSpec spec, const Tensor& out, const Tensor& lse, const AttentionInputs& in,
             const Tensor& scratch) {
  const Problem<T> p(spec, in);
  T *po = out.mutable_data<T>(), *pl = lse.mutable_data<T>(), *ps = scratch.mutable_data<T>();
  // Few heads are cut into parts of their queries, each of which packs keys and values for itself.
  const int64_t pairs = in.q.size(0) * p.heads, tiles = (p.queries + p.tile.rows - 1) / p.tile.rows;
  const int64_t parts = std::clamp<int64_t>(8 / std::max<int64_t>(1, pairs), 1, std::max<int64_t>(1, tiles));
  parallel_for(pairs * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t pair = i / parts, part = i % parts, b = pair / p.heads, h = pair % p.heads;
      const ForwardScratch<T> s(p, ps + thread_index() * scratch.size(1));
      const Head<const T> q = head<T>(in.q, b, h), k = head<T>(in.k, b, h), v = head<T>(in.v, b, h);
      pack_transposed(s.kt, k.p, k.step, p.keys);
      pack(s.v, v.p, v.step, p.values);
      for (int64_t t = tiles * part / parts; t < tiles * (part + 1) / parts; ++t)
        forward_tile(p, s, b, h, t * p.tile.rows, q, head_of(po, out, b, h), pl + pair * p.queries);
    }
  });
}

template <class T>
void backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in, const Tensor& scratch) {
  const Problem<T> p(spec, in.in);
  T *dq = out.dq.mutable_data<T>(), *dk = out.dk.mutable_data<T>(), *dv = out.dv.mutable_data<T>();
  T* ps = scratch.mutable_data<T>();
  parallel_for(in.in.q.size(0) * p.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / p.heads, h = i % p.heads;
      backward_head(p, b, h, in, head_of(dq, out.dq, b, h), head_of(dk, out.dk, b, h), head_of(dv, out.dv, b, h),
                    ps + thread_index() * scratch.size(1));
    }
  });
}

}  // namespace

template <Isa I>
void attention_forward(AttentionSpec spec, const Tensor& out, const Tensor& lse, const AttentionInputs& in,
                       const Tensor& scratch) {
  in.q.dtype() == DType::f64 ? forward<double>(spec, out, lse, in, scratch)
                             : forward<float>(spec, out, lse, in, scratch);
}

template <Isa I>
void attention_backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in,
                        const Tensor& scratch) {
  in.dout.dtype() == DType::f64 ? backward<double>(spec, out, in, scratch) : backward<float>(spec, out, in, scratch);
}

template void attention_forward<kTarget>(AttentionSpec, const Tensor&, const Tensor&, const AttentionInputs&,
                                         const Tensor&);
template void attention_backward<kTarget>(AttentionSpec, const AttentionGradients&, const AttentionSaved&,
                                          const Tensor&);

}  // namespace isonorm::kernels::cpu
