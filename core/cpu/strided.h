// Walks N tensors of the same shape in step (core/kernels/strided.h) by runs along the innermost dimension, in
// parallel.
#pragma once

#include "core/kernels/strided.h"
#include "core/system/parallel.h"

namespace isonorm {
namespace {

// Calls row(offsets, length) for runs along the innermost dimension that together cover all elements. offsets[n] is the
// first element of tensor n's run, whose elements are loop.inner(n) apart. Runs in parallel over fixed blocks of
// elements.
template <int N, class Row> void for_each_row(const Loop<N>& loop, const Partition& blocks, const Row& row) {
  const int last = loop.rank - 1;
  parallel_for(blocks, [&](int64_t begin, int64_t end) {
    int64_t index[kMaxRank], rest = begin;
    std::array<int64_t, N> at{};
    for (int d = last; d >= 0; --d) {
      index[d] = rest % loop.size[d];
      rest /= loop.size[d];
      for (int n = 0; n < N; ++n) at[n] += index[d] * loop.stride[n][d];
    }
    for (int64_t i = begin; i < end;) {
      const int64_t length = std::min(end - i, loop.size[last] - index[last]);
      row(at, length);
      i += length;
      // The next run starts at innermost index 0.
      for (int n = 0; n < N; ++n) at[n] -= index[last] * loop.stride[n][last];
      index[last] = 0;
      for (int d = last - 1; d >= 0; --d) {
        for (int n = 0; n < N; ++n) at[n] += loop.stride[n][d];
        if (++index[d] < loop.size[d]) break;
        for (int n = 0; n < N; ++n) at[n] -= loop.size[d] * loop.stride[n][d];
        index[d] = 0;
      }
    }
  });
}

// Blocks of a pointwise loop over n elements: some 10 us of work, and whole cache lines.
inline Partition element_blocks(int64_t n) { return even_blocks(n, 16384, 512); }

}  // namespace
}  // namespace isonorm
