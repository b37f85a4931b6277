// CUDA C++ for a host compiler, as far as the kernels of gpu/ use it. Indices are variables of the OS thread; barriers
// and warp operations call the runner of the block (block_run.h). Every primitive knows the source line of its call,
// for error reports and to detect threads that meet at different lines.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/emulated_gpu/words.h"

namespace isonorm::gpu {

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};

namespace emulated {

// A source line; as a default argument, the line of the call.
struct Place {
  const char* file = "";
  int line = 0;
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// Bytes of an operand of a warp operation, one slot per lane.
struct Slot {
  alignas(32) std::byte bytes[32];
};

// Waits for all lanes of `mask`. Returns every lane's operand.
const Slot* meet(const char* what, unsigned mask, const void* operand, size_t bytes, Place place);
// Waits for all threads of the block.
void meet_block(const char* what, Place place);
int lane_id();
// Ends the kernel with "kernel, block (0, 0, 0): what at file:line in thread 3: complaint".
[[noreturn]] void fault(const char* what, const char* complaint, Place place);
void* shared_bytes(const void* tag, size_t bytes, size_t alignment);  // the same memory for the same tag in a block
void* dynamic_bytes();

template <class T> T taken(const Slot* slots, int lane) {
  T v;
  __builtin_memcpy(&v, slots[lane].bytes, sizeof(T));
  return v;
}
template <class T, class F> T update_atomically(T* p, F f) {
  std::atomic_ref<T> at(*p);
  T old = at.load(std::memory_order_relaxed);
  while (!at.compare_exchange_weak(old, f(old), std::memory_order_relaxed)) {
  }
  return old;
}
}  // namespace emulated

inline void __syncthreads(emulated::Place place = emulated::Place::here()) {
  emulated::meet_block("__syncthreads", place);
}
inline void __syncwarp(unsigned mask = ~0u, emulated::Place place = emulated::Place::here()) {
  emulated::meet("__syncwarp", mask, nullptr, 0, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32, emulated::Place place = emulated::Place::here()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(emulated::Slot));
  constexpr const char* what = "__shfl_xor_sync";
  const int lane = emulated::lane_id(), source = lane ^ by;
  const emulated::Slot* slots = emulated::meet(what, mask, &v, sizeof(T), place);
  if (source >= (lane & ~(width - 1)) + width || source >= 32) return v;
  if (!(mask >> source & 1)) emulated::fault(what, "a lane reads from one that is not in the mask", place);
  return emulated::taken<T>(slots, source);
}

// Blocks may run on several OS threads, so atomics are real atomics.
template <class T> T atomicAdd(T* p, std::type_identity_t<T> v) {
  return std::atomic_ref<T>(*p).fetch_add(v, std::memory_order_relaxed);
}
template <class T> T atomicExch(T* p, std::type_identity_t<T> v) {
  return std::atomic_ref<T>(*p).exchange(v, std::memory_order_relaxed);
}
template <class T> T atomicMax(T* p, std::type_identity_t<T> v) {
  return emulated::update_atomically(p, [v](T old) { return old < v ? v : old; });
}
template <class T> T atomicMin(T* p, std::type_identity_t<T> v) {
  return emulated::update_atomically(p, [v](T old) { return v < old ? v : old; });
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace isonorm::gpu
