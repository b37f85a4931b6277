// Addresses of elements in strided tensors: the merged dimensions of core/kernels/strided.h as a kernel's argument.
#pragma once

#include <algorithm>

#include "core/kernels/strided.h"
#include "gpu/cuda.h"

namespace isonorm::gpu {

// Walks over N tensors of the same shape. 8 (2 + 8 + 8 N) bytes: up to 53 tensors fit into a kernel's arguments.
template <int N> struct Walk {
  int rank;
  int64_t size[kMaxRank], stride[N][kMaxRank], count;

  explicit Walk(const Loop<N>& l) : rank(l.rank), count(l.count) {
    std::copy_n(l.size, kMaxRank, size);
    for (int n = 0; n < N; ++n) std::copy_n(l.stride[n], kMaxRank, stride[n]);
  }
  // at[n]: offset of element e in tensor n, in elements.
  __device__ __forceinline__ void place(int64_t e, int64_t (&at)[N]) const {
    if (count <= int64_t{0xffffffff})
      divide(static_cast<uint32_t>(e), at);
    else
      divide(static_cast<uint64_t>(e), at);
  }

 private:
  // A 64-bit division is a function of some hundred instructions; a 32-bit division takes 20.
  template <class I> __device__ __forceinline__ void divide(I e, int64_t (&at)[N]) const {
    for (int n = 0; n < N; ++n) at[n] = 0;
    for (int d = rank - 1; d > 0; --d) {
      const I s = static_cast<I>(size[d]), q = e / s;
      for (int n = 0; n < N; ++n) at[n] += static_cast<int64_t>(e - q * s) * stride[n][d];
      e = q;
    }
    for (int n = 0; n < N; ++n) at[n] += static_cast<int64_t>(e) * stride[n][0];
  }
};

// The calling thread's element, if each thread has one.
__device__ __forceinline__ int64_t element() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

}  // namespace isonorm::gpu
