// The register block of a direct convolution: a sum over runs of two operands with their own steps.
#pragma once

#include "core/cpu/tile_product.h"

namespace isonorm {
namespace {

// Terms of a sum at even steps: their first positions in a and b, and their number.
struct Run {
  int64_t a, b, depth;
};

// A product's operands, for all blocks. Element (m, n) is the sum over runs and over i of a[run.a + m a_row + i
// a_column] b[run.b b_unit + i b_step + n].
template <class T> struct RunProduct {
  const Run* runs;
  int64_t count;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_unit, b_step;
};

// c[M, columns] = from + the sums, with V registers per row. Columns of c and from after the last one are neither read
// nor written.
template <int M, int V, class T>
void run_block(const RunProduct<T>& p, int64_t columns, T* c, int64_t c_step, From<T> from) {
  Vec<T> sum[M][V] = {};
  constexpr int share = V > 2 ? M : 3;  // rows that share a pointer
  constexpr int pointers = (M + share - 1) / share;
  for (const Run *run = p.runs, *end = run + p.count; run != end; ++run) {
    const T *rows[pointers], *b = p.b + run->b * p.b_unit;
    unroll<pointers>([&](auto r) { rows[r] = p.a + run->a + r * share * p.a_row; });
#pragma GCC unroll 2
    for (int64_t i = 0; i < run->depth; ++i, b += p.b_step) {
      Vec<T> line[V];
      unroll<V>([&](auto v) { line[v] = load_lanes<T>(b + v * kLanes<T>); });
      unroll<M>([&](auto m) {
        const Vec<T> x = splat<T>(rows[m / share][m % share * p.a_row]);
        unroll<V>([&](auto v) { sum[m][v] += x * line[v]; });
      });
      for (const T*& row : rows) row += p.a_column;
    }
  }
  const int64_t last = columns - (V - 1) * kLanes<T>;
  unroll<M>([&](auto m) {
    unroll<V>([&](auto v) {
      T* to = c + m * c_step + v * kLanes<T>;
      const T* base = from.p ? from.p + m * from.step + v * kLanes<T> : nullptr;
      const auto finish = [&](auto lanes) { lanes.store(to, base ? lanes.load(base) + sum[m][v] : sum[m][v]); };
      if (v + 1 < V || last == kLanes<T>)
        finish(Full<T>{});
      else
        finish(Short<T>{last});
    });
  });
}

// run_block() for any number of rows, in blocks of about equal size. `most`: the most registers of columns.
template <int most, class T>
void run_rows(RunProduct<T> p, int64_t rows, int64_t columns, T* c, int64_t c_step, From<T> from) {
  unroll<most>([&](auto less_vectors) {
    constexpr int V = less_vectors + 1;
    if (ceil_div(columns, kLanes<T>) != V) return;
    for (int64_t blocks = ceil_div(rows, block_rows(V)); blocks > 0; --blocks) {
      const int64_t m = ceil_div(rows, blocks);
      unroll<block_rows(V)>([&](auto less) {
        if (m == less + 1) run_block<less + 1, V>(p, columns, c, c_step, from);
      });
      rows -= m, p.a += m * p.a_row, c += m * c_step, from = from.at(m, 0);
    }
  });
}

}  // namespace
}  // namespace isonorm
