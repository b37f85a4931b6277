// Walks N tensors of one shape in step. Neighbouring dimensions that every tensor crosses with one stride are merged
// first, so contiguous and broadcast operands become long inner rows.
#pragma once

#include <array>

#include "core/system/parallel.h"
#include "core/tensor.h"

namespace isonorm {
namespace {

// Strides with which `t` is read as if it had `shape`: 0 along broadcast dimensions.
inline Dims broadcast_strides(const Tensor& t, const Dims& shape) {
  Dims s;
  s.rank = shape.rank;
  const int shift = shape.rank - t.rank();
  for (int i = 0; i < shape.rank; ++i)
    s[i] = i < shift || (t.shape()[i - shift] == 1 && shape[i] != 1) ? 0 : t.strides()[i - shift];
  return s;
}

template <int N> struct Loop {
  int rank = 0;  // at least 1
  int64_t size[kMaxRank];
  int64_t stride[N][kMaxRank];
  int64_t count = 0;  // number of elements

  Loop(const Dims& shape, const std::array<Dims, N>& strides) {
    count = numel(shape);
    for (int d = 0; count > 0 && d < shape.rank; ++d) {
      if (shape[d] == 1) continue;
      bool merge = rank > 0;
      for (int n = 0; merge && n < N; ++n) merge = stride[n][rank - 1] == shape[d] * strides[n][d];
      if (!merge) {
        size[rank++] = 1;
      }
      size[rank - 1] *= shape[d];
      for (int n = 0; n < N; ++n) stride[n][rank - 1] = strides[n][d];
    }
    if (rank == 0) {
      rank = 1;
      size[0] = 1;
      for (int n = 0; n < N; ++n) stride[n][0] = 0;
    }
  }

  int64_t inner(int n) const { return stride[n][rank - 1]; }
};

// Over the elements of `out`, to whose shape the inputs are broadcast.
template <class... In> Loop<1 + sizeof...(In)> loop_over(const Tensor& out, const In&... inputs) {
  return {out.shape(), {out.strides(), broadcast_strides(inputs, out.shape())...}};
}

// Whether element i of `out` and of every input, broadcast to its shape, lies i elements behind the first.
template <class... In> bool lie_alike(const Tensor& out, const In&... inputs) {
  const TensorImpl& o = out.impl();
  return o.contiguous && ((inputs.impl().contiguous && inputs.impl().numel == o.numel) && ...);
}

// Calls row(offsets, length) for runs along the innermost dimension that cover all elements; offsets[n] is where tensor
// n's run begins, in elements, and it goes on with loop.inner(n). Runs in parallel over fixed blocks of elements.
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
      // The next run starts where the innermost index is 0 again.
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

// Blocks of a pointwise loop over n elements: some 10 us of work, and whole lines of the caches.
inline Partition element_blocks(int64_t n) { return even_blocks(n, 16384, 512); }

}  // namespace
}  // namespace isonorm
