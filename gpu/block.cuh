// Shared by kernels: packs of 16 bytes, and sums over a warp and a block in a fixed order that no schedule changes.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/dtype.h"
#include "gpu/cuda.h"

namespace isonorm::gpu {

// N neighbouring elements that are loaded and stored by one instruction.
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };
template <class T> inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

// p must be a multiple of the pack's size. The bytes travel as one machine word: nvcc does not join the loads of a
// class with constructors by itself, and a host compiler may not read a T through another type.
template <int N, class T> __device__ __forceinline__ Pack<T, N> load(const T* p) {
  using P = Pack<T, N>;
#ifdef ISONORM_GPU_EMULATED
  if (reinterpret_cast<uintptr_t>(p) % sizeof(P))
    emulated::fault("load", "the address is not a multiple of the pack", emulated::Place::here());
  P pack;
  std::memcpy(static_cast<void*>(&pack), p, sizeof(P));
  return pack;
#else
  if constexpr (sizeof(P) == 16)
    return __builtin_bit_cast(P, *reinterpret_cast<const uint4*>(p));
  else if constexpr (sizeof(P) == 8)
    return __builtin_bit_cast(P, *reinterpret_cast<const uint2*>(p));
  else if constexpr (sizeof(P) == 4)
    return __builtin_bit_cast(P, *reinterpret_cast<const unsigned*>(p));
  else
    return *reinterpret_cast<const P*>(p);
#endif
}
template <int N, class T> __device__ __forceinline__ void store(T* p, const Pack<T, N>& pack) {
  using P = Pack<T, N>;
#ifdef ISONORM_GPU_EMULATED
  if (reinterpret_cast<uintptr_t>(p) % sizeof(P))
    emulated::fault("store", "the address is not a multiple of the pack", emulated::Place::here());
  std::memcpy(static_cast<void*>(p), &pack, sizeof(P));
#else
  if constexpr (sizeof(P) == 16)
    *reinterpret_cast<uint4*>(p) = __builtin_bit_cast(uint4, pack);
  else if constexpr (sizeof(P) == 8)
    *reinterpret_cast<uint2*>(p) = __builtin_bit_cast(uint2, pack);
  else if constexpr (sizeof(P) == 4)
    *reinterpret_cast<unsigned*>(p) = __builtin_bit_cast(unsigned, pack);
  else
    *reinterpret_cast<P*>(p) = pack;
#endif
}

// Loads N numbers, 16 bytes at a time; p must be a multiple of 16 bytes.
template <int N, class A> __device__ __forceinline__ void load_all(A (&to)[N], const A* p) {
  constexpr int M = kPack<A>;
#pragma unroll
  for (int i = 0; i < N; i += M) {
    const Pack<A, M> part = load<M>(p + i);
#pragma unroll
    for (int k = 0; k < M; ++k) to[i + k] = part.v[k];
  }
}
template <int N, class A> __device__ __forceinline__ void store_all(A* p, const A (&v)[N]) {
  constexpr int M = kPack<A>;
#pragma unroll
  for (int i = 0; i < N; i += M) {
    Pack<A, M> part;
#pragma unroll
    for (int k = 0; k < M; ++k) part.v[k] = v[i + k];
    store(p + i, part);
  }
}

__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }
__device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x / 32); }
__device__ __forceinline__ int warps() { return static_cast<int>(blockDim.x / 32); }

struct Plus {
  template <class A> __device__ __forceinline__ A operator()(A a, A b) const { return a + b; }
};
struct Larger {  // NaN wins
  template <class A> __device__ __forceinline__ A operator()(A a, A b) const { return a != a || a > b ? a : b; }
};

// Gives the same value in every lane, because a butterfly adds the same pairs in every lane.
template <class F, class A> __device__ __forceinline__ A warp_reduce(A v, F f = {}) {
  for (int by = 16; by > 0; by /= 2) v = f(v, __shfl_xor_sync(~0u, v, by));
  return v;
}

// Gives the same value in every thread of the block. room: 32 values of shared memory.
template <class F, class A> __device__ __forceinline__ A block_reduce(A v, A* room, F f = {}) {
  v = warp_reduce<F>(v, f);
  __syncthreads();  // the previous reduction in this room has been read
  if (lane() == 0) room[warp()] = v;
  __syncthreads();
  v = room[0];
  for (int w = 1; w < warps(); ++w) v = f(v, room[w]);
  return v;
}

}  // namespace isonorm::gpu
