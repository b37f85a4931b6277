// Attention in tiles of scores (Rabe & Staats, 2112.05682; Dao et al., 2205.14135): products by single-threaded BLAS
// inside a parallel loop over heads, softmax rows in vector registers in between. A row of scores that spans several
// tiles keeps a running maximum and sum.
#include "core/kernels/attention.h"

#include <cmath>

#include "core/cpu/gemm.h"
#include "core/cpu/softmax_row.h"
#include "core/cpu/target.h"
#include "core/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

constexpr auto N = CblasNoTrans, X = CblasTrans;

// One head of a [batch, heads, time, size] tensor: rows of adjacent elements, `step` apart.
template <class T>
struct Head {
  T* p;
  int64_t step;
  T* row(int64_t t) const { return p + t * step; }
};
template <class T>
Head<const T> head(const Tensor& t, int64_t b, int64_t h) {
  return {t.data<T>() + b * t.strides()[0] + h * t.strides()[1], std::max(t.strides()[2], t.size(3))};
}
template <class T>
Head<T> mutable_head(T* base, const Tensor& t, int64_t b, int64_t h) {
  return {base + b * t.strides()[0] + h * t.strides()[1], std::max(t.strides()[2], t.size(3))};
}

// What all tiles of a call share.
template <class T>
struct Problem {
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
        tile(attention_tile(queries, keys, s.causal)) {
    if (!in.mask.defined()) return;
    mask = in.mask.data<T>();
    mask_strides = in.mask.strides();
  }

  int64_t query_tiles() const { return (queries + tile.rows - 1) / tile.rows; }
  // Keys that the queries [.., end) see.
  int64_t visible(int64_t end) const { return spec.causal ? std::min(keys, end) : keys; }
};

// A tile: queries [q, q + rows) by keys [k, k + columns) of head (b, h).
struct Place {
  int64_t b, h, q, rows, k, columns;
};

// scores = scale q k^T + mask, and -inf behind what row r sees, up to the next full register. seen(r) says how long
// that is.
template <class T>
void score_tile(const Problem<T>& p, const Place& at, Head<const T> q, Head<const T> k, T* scores) {
  gemm(N, X, at.rows, at.columns, p.size, T(p.spec.scale), q.row(at.q), q.step, k.row(at.k), k.step, T(0), scores,
       p.tile.line);
  if (!p.mask) return;
  const Dims& s = p.mask_strides;
  const T* mask = p.mask + at.b * s[0] + at.h * s[1] + at.q * s[2] + at.k * s[3];
  for (int64_t r = 0; r < at.rows; ++r)
    for (int64_t j = 0; j < at.columns; ++j) scores[r * p.tile.line + j] += mask[r * s[2] + j * s[3]];
}

// How many columns of the tile row r sees, and that number with the rest of the last register, which is set to -inf.
template <class T>
int64_t close_row(const Problem<T>& p, const Place& at, int64_t r, T* row) {
  const int64_t seen = p.spec.causal ? std::clamp<int64_t>(at.q + r + 1 - at.k, 0, at.columns) : at.columns;
  const int64_t whole = (seen + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  std::fill(row + seen, row + whole, -std::numeric_limits<T>::infinity());
  if (whole < at.columns) std::fill(row + whole, row + at.columns, T(0));
  return whole;
}

template <class T>
void scale_row(T* row, T factor, int64_t n) {
  for_lanes<T>(n, [&](int64_t i, auto lanes) {
    const Vec<T> v = lanes.load(row + i);
    lanes.store(row + i, lanes.choose(v * factor, v));
  });
}

template <class T>
void forward_tile(const Problem<T>& p, int64_t b, int64_t h, int64_t q0, const AttentionInputs& in, Head<T> out, T* lse,
                  T* scratch) {
  const Head<const T> q = head<T>(in.q, b, h), k = head<T>(in.k, b, h), v = head<T>(in.v, b, h);
  const int64_t rows = std::min(p.tile.rows, p.queries - q0), visible = p.visible(q0 + rows);
  T *scores = scratch, *top = scratch + p.tile.rows * p.tile.line, *sum = top + p.tile.rows;
  std::fill_n(top, rows, -std::numeric_limits<T>::infinity());
  std::fill_n(sum, rows, T(0));
  for (int64_t k0 = 0; k0 < visible; k0 += p.tile.keys) {
    const Place at{b, h, q0, rows, k0, std::min(p.tile.keys, visible - k0)};
    score_tile(p, at, q, k, scores);
    for (int64_t r = 0; r < rows; ++r) {
      T* row = scores + r * p.tile.line;
      const int64_t n = close_row(p, at, r, row);
      const T highest = std::max(top[r], row_max<T>(row, n));
      // A row of which nothing is visible yet keeps its sum of 0; at the end that gives NaN, as a softmax of -inf only
      // does.
      const T shift = highest == -std::numeric_limits<T>::infinity() ? T(0) : highest;
      const T total = sum_row<T, 1>(n, [&](int64_t i, auto lanes, Vec<T>* acc) {
        const Vec<T> e = exp_lanes<T>(lanes.load(row + i) - shift);
        lanes.store(row + i, e);
        acc[0] += e;
      })[0];
      if (k0 > 0) {
        const T correction = std::exp(top[r] - shift);
        sum[r] *= correction;
        scale_row(out.row(q0 + r), correction, p.values);
      }
      sum[r] += total;
      top[r] = highest;
    }
    gemm(N, N, rows, p.values, at.columns, T(1), scores, p.tile.line, v.row(k0), v.step, T(k0 > 0), out.row(q0),
         out.step);
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (p.keys == 0)
      std::fill_n(out.row(q0 + r), p.values, T(0));
    else
      scale_row(out.row(q0 + r), 1 / sum[r], p.values);
    lse[q0 + r] = top[r] + std::log(sum[r]);
  }
}

// The gradients of one head. dk and dv sum over tiles of queries in order.
template <class T>
void backward_head(const Problem<T>& p, int64_t b, int64_t h, const AttentionSaved& in, Head<T> dq, Head<T> dk,
                   Head<T> dv, T* scratch) {
  const Head<const T> q = head<T>(in.in.q, b, h), k = head<T>(in.in.k, b, h), v = head<T>(in.in.v, b, h);
  const Head<const T> out = head<T>(in.out, b, h), dout = head<T>(in.dout, b, h);
  const T* lse = in.lse.data<T>() + (b * p.heads + h) * p.queries;
  const int64_t line = p.tile.line;
  T *weights = scratch, *dweights = scratch + p.tile.rows * line, *along = dweights + p.tile.rows * line;
  for (int64_t t = 0; t < p.keys; ++t) {
    std::fill_n(dk.row(t), p.size, T(0));
    std::fill_n(dv.row(t), p.values, T(0));
  }
  for (int64_t q0 = 0; q0 < p.queries; q0 += p.tile.rows) {
    const int64_t rows = std::min(p.tile.rows, p.queries - q0), visible = p.visible(q0 + rows);
    // The gradient of a softmax row needs <dP, P> = <dout, out>.
    for (int64_t r = 0; r < rows; ++r) {
      const T *d = dout.row(q0 + r), *o = out.row(q0 + r);
      along[r] = sum_row<T, 1>(p.values, [&](int64_t i, auto lanes, Vec<T>* acc) {
        acc[0] += lanes.keep(lanes.load(d + i)) * lanes.load(o + i);
      })[0];
      if (p.keys == 0) std::fill_n(dq.row(q0 + r), p.size, T(0));
    }
    for (int64_t k0 = 0; k0 < visible; k0 += p.tile.keys) {
      const Place at{b, h, q0, rows, k0, std::min(p.tile.keys, visible - k0)};
      score_tile(p, at, q, k, weights);
      for (int64_t r = 0; r < rows; ++r) {
        T* row = weights + r * line;
        const T shift = lse[q0 + r];
        for_lanes<T>(close_row(p, at, r, row),
                     [&](int64_t i, auto lanes) { lanes.store(row + i, exp_lanes<T>(lanes.load(row + i) - shift)); });
      }
      const T scale = T(p.spec.scale);
      gemm(X, N, at.columns, p.values, rows, T(1), weights, line, dout.row(q0), dout.step, T(1), dv.row(k0), dv.step);
      gemm(N, X, rows, at.columns, p.values, T(1), dout.row(q0), dout.step, v.row(k0), v.step, T(0), dweights, line);
      for (int64_t r = 0; r < rows; ++r) {
        T *w = weights + r * line, *dw = dweights + r * line;
        const T mean = along[r];
        for_lanes<T>(at.columns, [&](int64_t i, auto lanes) {
          lanes.store(dw + i, lanes.choose(lanes.load(w + i) * (lanes.load(dw + i) - mean), lanes.load(dw + i)));
        });
      }
      gemm(N, N, rows, p.size, at.columns, scale, dweights, line, k.row(k0), k.step, T(k0 > 0), dq.row(q0), dq.step);
      gemm(X, N, at.columns, p.size, rows, scale, dweights, line, q.row(q0), q.step, T(1), dk.row(k0), dk.step);
    }
  }
}

// body(i) for i in [0, n) in parallel. There is always a parallel region, even for n = 1: inside of one BLAS stays
// single-threaded, so that its bits do not depend on the number of threads.
template <class F>
void parallel_tasks(int64_t n, const F& body) {
  parallel_for(std::max<int64_t>(n, 2), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < std::min(end, n); ++i) body(i);
  });
}

template <class T>
void forward(AttentionSpec spec, const Tensor& out, const Tensor& lse, const AttentionInputs& in,
             const Tensor& scratch) {
  const Problem<T> p(spec, in);
  T *po = out.mutable_data<T>(), *pl = lse.mutable_data<T>(), *ps = scratch.mutable_data<T>();
  const int64_t tiles = p.query_tiles();
  parallel_tasks(in.q.size(0) * p.heads * tiles, [&](int64_t i) {
    const int64_t pair = i / tiles, b = pair / p.heads, h = pair % p.heads;
    forward_tile(p, b, h, i % tiles * p.tile.rows, in, mutable_head(po, out, b, h), pl + pair * p.queries,
                 ps + thread_index() * scratch.size(1));
  });
}

template <class T>
void backward(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in, const Tensor& scratch) {
  const Problem<T> p(spec, in.in);
  T *dq = out.dq.mutable_data<T>(), *dk = out.dk.mutable_data<T>(), *dv = out.dv.mutable_data<T>();
  T* ps = scratch.mutable_data<T>();
  parallel_tasks(in.in.q.size(0) * p.heads, [&](int64_t i) {
    const int64_t b = i / p.heads, h = i % p.heads;
    backward_head(p, b, h, in, mutable_head(dq, out.dq, b, h), mutable_head(dk, out.dk, b, h),
                  mutable_head(dv, out.dv, b, h), ps + thread_index() * scratch.size(1));
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
