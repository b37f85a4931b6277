// Internal: walks over N tensors of the same shape in step, for kernels of every device. First merges neighbouring
// dimensions that have one stride in each tensor, so that contiguous and broadcast operands become long inner rows.
#pragma once

#include <array>

#include "core/tensor.h"

namespace isonorm {
namespace {

// Strides to read `t` as if it had `shape`: 0 along broadcast dimensions.
inline Dims broadcast_strides(const Tensor& t, const Dims& shape) {
  Dims s;
  s.rank = shape.rank;
  const int shift = shape.rank - t.rank();
  for (int i = 0; i < shape.rank; ++i)
    s.v[i] = i < shift || (t.shape().v[i - shift] == 1 && shape.v[i] != 1) ? 0 : t.strides().v[i - shift];
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
      if (shape.v[d] == 1) continue;
      bool merge = rank > 0;
      for (int n = 0; merge && n < N; ++n) merge = stride[n][rank - 1] == shape.v[d] * strides[n].v[d];
      if (!merge) {
        size[rank++] = 1;
      }
      size[rank - 1] *= shape.v[d];
      for (int n = 0; n < N; ++n) stride[n][rank - 1] = strides[n].v[d];
    }
    if (rank == 0) {
      rank = 1;
      size[0] = 1;
      for (int n = 0; n < N; ++n) stride[n][0] = 0;
    }
  }

  int64_t inner(int n) const { return stride[n][rank - 1]; }
};

// A loop over the elements of `out`; the inputs are broadcast to its shape.
template <class... In> Loop<1 + sizeof...(In)> loop_over(const Tensor& out, const In&... inputs) {
  return {out.shape(), {out.strides(), broadcast_strides(inputs, out.shape())...}};
}

// True if element i of `out` and of every input, broadcast to its shape, is i elements after the first.
template <class... In> bool lie_alike(const Tensor& out, const In&... inputs) {
  const TensorImpl& o = out.impl();
  return o.contiguous && ((inputs.impl().contiguous && inputs.impl().numel == o.numel) && ...);
}

}  // namespace
}  // namespace isonorm
