// The heads of attention's tensors, which kernels read in place, also inside a packed projection.
#pragma once

#include "core/tensor.h"
#include "gpu/cuda.h"

namespace isonorm::gpu {

// A matrix [count, n] whose rows have adjacent elements and are `stride` elements apart.
template <class T> struct Rows {
  T* data;
  int64_t stride;
  int count;
  __device__ __forceinline__ T* row(int i) const { return data + i * stride; }
};

// A tensor [batch, heads, rows, n], elements of a row adjacent; strides in elements.
template <class T> struct Heads {
  T* data;
  int64_t batch, head, row;

  // The rows of head `pair`, counted over all [batch, heads].
  __device__ __forceinline__ Rows<T> rows(int pair, int heads, int count) const {
    return {data ? data + pair / heads * batch + pair % heads * head : nullptr, row, count};
  }
};

template <class T> Heads<const T> read_heads(const Tensor& t) {
  return {t.data<T>(), t.strides().v[0], t.strides().v[1], t.strides().v[2]};
}
template <class T> Heads<T> write_heads(const Tensor& t) {
  return {t.mutable_data<T>(), t.strides().v[0], t.strides().v[1], t.strides().v[2]};
}

}  // namespace isonorm::gpu
