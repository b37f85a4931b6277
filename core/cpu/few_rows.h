// Products of a few rows with a weight of bf16 that is read once, as it lies, and widened in registers: what decoding a token
// at a time waits for is memory. For instruction sets without products of bf16. An element is a dot product in f32: lane
// l sums the entries l, l + lanes, ... by multiply-adds in order, then halves of the register are added. Its bits depend
// neither on the threads nor on how many rows and columns there are.
#pragma once

#include "core/cpu/gemm.h"

namespace isonorm {
namespace {

constexpr int64_t kFewAtOnce = kTarget == Isa::avx512 ? 6 : 3;  // rows of x that meet kTogether of w in registers
constexpr int kTogether = kTarget == Isa::avx512 ? 4 : 2;

// c [m, n], rows c_step apart, = from + x [m, k] w [n, k]^T; rows of x and w are contiguous.
struct FewRows {
  int64_t m, n, k;
  const float* x;
  const bf16* w;
  int64_t w_step;
  float* c;
  From<float> from;
};

// M rows and N columns of c.
template <int M, int N> void dot_block(const FewRows& g, int64_t row, int64_t column) {
  Vec<float> sum[N][M] = {};
  const float* x = g.x + row * g.k;
  const bf16* w = g.w + column * g.w_step;
  for_lanes<float>(g.k, [&](int64_t i, auto lanes) {
    unroll<N>([&](auto n) {
      __builtin_prefetch(w + (n + 2 * N) * g.w_step + i);  // of the next block but one
      const Vec<float> line = lanes.keep(lanes.load(w + n * g.w_step + i));
      unroll<M>([&](auto m) { sum[n][m] += lanes.keep(lanes.load(x + m * g.k + i)) * line; });
    });
  });
  const From<float> from = g.from.at(row, column);
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      const float y = sum_lanes<float>(sum[n][m]);
      g.c[(row + m) * g.n + column + n] = from.p ? from.p[m * from.step + n] + y : y;
    }
}

// All rows, in blocks as equal as can be.
template <int N> void dot_rows(const FewRows& g, int64_t column) {
  int64_t row = 0;
  for (int64_t blocks = ceil_div(g.m, kFewAtOnce); blocks > 0; --blocks) {
    const int64_t m = ceil_div(g.m - row, blocks);
    unroll<kFewAtOnce>([&](auto less) {
      if (m == less + 1) dot_block<less + 1, N>(g, row, column);
    });
    row += m;
  }
}

inline void few_rows(const FewRows& g) {
  const bool alone = g.m * g.n * g.k <= kWorthSharing;
  parallel_for(alone ? Partition{g.n, g.n > 0} : thread_blocks(g.n, 256, kTogether), [&](int64_t begin, int64_t end) {
    const FlushSubnormals flush;
    int64_t j = begin;
    for (; j + kTogether <= end; j += kTogether) dot_rows<kTogether>(g, j);
    for (; j < end; ++j) dot_rows<1>(g, j);
  });
}

}  // namespace
}  // namespace isonorm
