// CUDA C++ as the kernels of gpu/ use it, for a host compiler: indices are variables of the OS thread, and whatever
// threads wait in goes to the runner of their block (block_run.h). Every primitive knows the line that called it, which
// is how reports name it and how threads at two different ones are found.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
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
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};
inline constexpr int warpSize = 32;

namespace emulated {

// A line of a source: that of the call where it is a default argument.
struct Place {
  const char* file = "";
  int line = 0;
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// Bytes of an operand of a warp primitive, one slot for each lane.
struct Slot {
  alignas(32) std::byte bytes[32];
};

// All lanes of `mask` meet; returns what each of them handed in.
const Slot* meet(const char* what, unsigned mask, const void* operand, size_t bytes, Place place);
// All threads of the block meet; returns in how many of them `vote` is not 0.
int meet_block(const char* what, bool vote, Place place);
int lane_id();
// Ends the kernel with "kernel, block (0, 0, 0): what at file:line in thread 3: complaint".
[[noreturn]] void fault(const char* what, const char* complaint, Place place);
void* shared_bytes(const void* tag, size_t bytes, size_t alignment);  // the same for one tag in a block
void* dynamic_bytes();
void give_way();  // other threads of the block may go first

template <class T> T taken(const Slot* slots, int lane) {
  T v;
  __builtin_memcpy(&v, slots[lane].bytes, sizeof(T));
  return v;
}
template <class T> T shuffle(const char* what, unsigned mask, T v, int source, bool inside, Place place) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Slot));
  const Slot* slots = meet(what, mask, &v, sizeof(T), place);
  if (!inside) return v;
  if (!(mask >> source & 1)) fault(what, "a lane reads from one that is not in the mask", place);
  return taken<T>(slots, source);
}
template <class T, class F> T reduce_lanes(const char* what, unsigned mask, T v, F f, Place place) {
  const Slot* slots = meet(what, mask, &v, sizeof(T), place);
  bool first = true;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      const T other = taken<T>(slots, lane);
      v = first ? other : f(v, other);
      first = false;
    }
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
  emulated::meet_block("__syncthreads", false, place);
}
inline int __syncthreads_count(int p, emulated::Place place = emulated::Place::here()) {
  return emulated::meet_block("__syncthreads_count", p != 0, place);
}
inline int __syncthreads_or(int p, emulated::Place place = emulated::Place::here()) {
  return emulated::meet_block("__syncthreads_or", p != 0, place) != 0;
}
inline int __syncthreads_and(int p, emulated::Place place = emulated::Place::here()) {
  return emulated::meet_block("__syncthreads_and", p == 0, place) == 0;
}
inline void __syncwarp(unsigned mask = ~0u, emulated::Place place = emulated::Place::here()) {
  emulated::meet("__syncwarp", mask, nullptr, 0, place);
}

template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32, emulated::Place place = emulated::Place::here()) {
  const int first = emulated::lane_id() & ~(width - 1);
  return emulated::shuffle("__shfl_sync", mask, v, first + (source & (width - 1)), true, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32, emulated::Place place = emulated::Place::here()) {
  const int lane = emulated::lane_id(), source = lane ^ by;
  const bool inside = source < (lane & ~(width - 1)) + width && source < 32;
  return emulated::shuffle("__shfl_xor_sync", mask, v, source, inside, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, emulated::Place place = emulated::Place::here()) {
  const int lane = emulated::lane_id(), source = lane + static_cast<int>(by);
  return emulated::shuffle("__shfl_down_sync", mask, v, source, source < (lane & ~(width - 1)) + width, place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, emulated::Place place = emulated::Place::here()) {
  const int lane = emulated::lane_id(), source = lane - static_cast<int>(by);
  return emulated::shuffle("__shfl_up_sync", mask, v, source, source >= (lane & ~(width - 1)), place);
}
inline unsigned __ballot_sync(unsigned mask, int p, emulated::Place place = emulated::Place::here()) {
  const unsigned bit = p != 0 ? 1u << emulated::lane_id() : 0;
  return emulated::reduce_lanes("__ballot_sync", mask, bit, std::bit_or<>(), place);
}
inline int __any_sync(unsigned mask, int p, emulated::Place place = emulated::Place::here()) {
  return emulated::reduce_lanes("__any_sync", mask, int{p != 0}, std::bit_or<>(), place);
}
inline int __all_sync(unsigned mask, int p, emulated::Place place = emulated::Place::here()) {
  return emulated::reduce_lanes("__all_sync", mask, int{p != 0}, std::bit_and<>(), place);
}
template <class T>
concept FourByteInteger = std::is_integral_v<T> && sizeof(T) == 4;
template <FourByteInteger T> T __reduce_add_sync(unsigned mask, T v, emulated::Place place = emulated::Place::here()) {
  return emulated::reduce_lanes("__reduce_add_sync", mask, v, std::plus<>(), place);
}
template <FourByteInteger T> T __reduce_max_sync(unsigned mask, T v, emulated::Place place = emulated::Place::here()) {
  return emulated::reduce_lanes(
      "__reduce_max_sync", mask, v, [](T a, T b) { return std::max(a, b); }, place);
}
template <FourByteInteger T> T __reduce_min_sync(unsigned mask, T v, emulated::Place place = emulated::Place::here()) {
  return emulated::reduce_lanes(
      "__reduce_min_sync", mask, v, [](T a, T b) { return std::min(a, b); }, place);
}

// Blocks may run on several OS threads, so these are atomic there too.
template <class T> T atomicAdd(T* p, std::type_identity_t<T> v) {
  return std::atomic_ref<T>(*p).fetch_add(v, std::memory_order_relaxed);
}
template <class T> T atomicExch(T* p, std::type_identity_t<T> v) {
  return std::atomic_ref<T>(*p).exchange(v, std::memory_order_relaxed);
}
template <class T> T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  std::atomic_ref<T>(*p).compare_exchange_strong(expected, v, std::memory_order_relaxed);
  return expected;
}
template <class T> T atomicMax(T* p, std::type_identity_t<T> v) {
  return emulated::update_atomically(p, [v](T old) { return old < v ? v : old; });
}
template <class T> T atomicMin(T* p, std::type_identity_t<T> v) {
  return emulated::update_atomically(p, [v](T old) { return v < old ? v : old; });
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __nanosleep(unsigned) { emulated::give_way(); }

template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> void __stcs(T* p, std::type_identity_t<T> v) { *p = v; }
template <class T> void __stcg(T* p, std::type_identity_t<T> v) { *p = v; }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

}  // namespace isonorm::gpu
