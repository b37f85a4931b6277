// Included by every source of gpu/: CUDA, or its emulation on the CPU (ISONORM_GPU_EMULATED). Below: shared memory,
// which the two declare differently. Launches are in launch.h.
#pragma once

#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/device.h"
#include "tests/emulated_gpu/runtime.h"
#else
#include <cuda_runtime.h>
#endif

namespace isonorm::gpu {

#ifdef ISONORM_GPU_EMULATED

// The shared memory of a block as a struct that the kernel defines. Uninitialized.
template <class S> S& shared() {
  static constexpr char tag = 0;
  return *static_cast<S*>(emulated::shared_bytes(&tag, sizeof(S), alignof(S)));
}
// The shared memory that the launch requested.
template <class T> T* dynamic_shared() { return static_cast<T*>(emulated::dynamic_bytes()); }

#elif defined(__CUDACC__)

template <class S> __device__ __forceinline__ S& shared() {
  alignas(S) __shared__ unsigned char bytes[sizeof(S)];  // not S itself: its members may have initializers
  return *reinterpret_cast<S*>(bytes);
}
template <class T> __device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dynamic_bytes[];
  return reinterpret_cast<T*>(dynamic_bytes);
}

#endif

}  // namespace isonorm::gpu
