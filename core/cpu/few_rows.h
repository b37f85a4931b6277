// Products of a few rows with a matrix whose rows are read once, in place, because decoding one token at a time is
// bound by memory. An element is a dot product: lane l sums the entries l, l + lanes, ... by multiply-adds in order,
// then halves of the register are added. Its bits do not depend on the number of threads, rows or columns.
#pragma once

#include "core/cpu/gemm.h"

namespace isonorm {
namespace {

constexpr int64_t kFewAtOnce = kTarget == Isa::avx512 ? 6 : 3;  // rows of x for kTogether rows of w in registers
constexpr int kTogether = kTarget == Isa::avx512 ? 4 : 2;

// c = from + x [m, k] w [n, k]^T. Rows of x and w are contiguous. S is T, or bf16, which is widened in registers.
template <class T, class S> struct FewRows {
  int64_t m, n, k;
  const T* x;
  int64_t x_step;
  const S* w;
  int64_t w_step;
  T* c;  // element (i, j) is c[i * c_row + j * c_column]
  int64_t c_row, c_column;
  Strided<T> from;  // null: 0
};

// A block of M rows and N columns of c.
template <int M, int N, class T, class S> void dot_block(const FewRows<T, S>& g, int64_t row, int64_t column) {
  Vec<T> sum[N][M] = {};
  const T* x = g.x + row * g.x_step;
  const S* w = g.w + column * g.w_step;
  for_lanes<T>(g.k, [&](int64_t i, auto lanes) {
    unroll<N>([&](auto n) {
      __builtin_prefetch(w + (n + 2 * N) * g.w_step + i);  // for the block after the next
      const Vec<T> line = lanes.keep(lanes.load(w + n * g.w_step + i));
      unroll<M>([&](auto m) { sum[n][m] += lanes.keep(lanes.load(x + m * g.x_step + i)) * line; });
    });
  });
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      const T y = sum_lanes<T>(sum[n][m]);
      const T* const from = g.from.p ? g.from.p + (row + m) * g.from.row + (column + n) * g.from.column : nullptr;
      g.c[(row + m) * g.c_row + (column + n) * g.c_column] = from ? *from + y : y;
    }
}

// All rows, in blocks of about equal size.
template <int N, class T, class S> void dot_rows(const FewRows<T, S>& g, int64_t column) {
  int64_t row = 0;
  for (int64_t blocks = ceil_div(g.m, kFewAtOnce); blocks > 0; --blocks) {
    const int64_t m = ceil_div(g.m - row, blocks);
    unroll<kFewAtOnce>([&](auto less) {
      if (m == less + 1) dot_block<less + 1, N>(g, row, column);
    });
    row += m;
  }
}

template <class T, class S> void few_rows(const FewRows<T, S>& g) {
  const bool alone = g.m * g.n * g.k <= kWorthSharing;
  parallel_for(alone ? Partition{g.n, g.n > 0} : thread_blocks(g.n, 256, kTogether), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    int64_t j = begin;
    for (; j + kTogether <= end; j += kTogether) dot_rows<kTogether>(g, j);
    for (; j < end; ++j) dot_rows<1>(g, j);
  });
}

}  // namespace
}  // namespace isonorm
