// Non-temporal stores: large results go to memory past the caches. An ordinary store first reads the line that it
// overwrites; in a kernel bound by memory this is a quarter or a third of the traffic. Values do not depend on it.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

#include "core/cpu/lanes.h"
#include "core/tensor.h"

namespace isonorm {
namespace {

// True if a contiguous result, computed in rows of `width`, should be stored past the caches: if it is so large that
// the next op would find little in a cache (docs/kernels.md). Its rows must be whole cache lines, because a
// line that is stored in parts is slow past the caches. Its type must be the compute type, so that whole registers are
// stored.
template <class T> bool passes_caches(const Tensor& out, int64_t width) {
  constexpr int64_t least = int64_t{8} << 20, line = 64, size = sizeof(T);
  return std::is_same_v<T, acc_t<T>> && out.numel() * size >= least && width * size % line == 0 &&
         reinterpret_cast<uintptr_t>(out.data<T>()) % line == 0;
}

// Stores a register past the caches. `to` is aligned to the register's size.
template <class A> ISO_HD void store_nontemporal(A* to, Vec<A> v) {
#ifdef __x86_64__
  if constexpr (sizeof(v) == 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), std::bit_cast<__m512i>(v));
  else if constexpr (sizeof(v) == 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), std::bit_cast<__m256i>(v));
  else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), std::bit_cast<__m128i>(v));
#else
  store_lanes<A>(to, v);
#endif
}

// Prefetches the line of p to the first-level cache, except for bf16, whose rows are bound by their conversion.
template <class T> ISO_HD void bring(const T* p) {
  if constexpr (!std::is_same_v<T, bf16>) __builtin_prefetch(p);
}

// Orders a thread's stores past the caches before its later stores.
inline void fence_nontemporal([[maybe_unused]] bool nontemporal) {
#ifdef __x86_64__
  if (nontemporal) _mm_sfence();
#endif
}

// A register of a result that may be stored past the caches.
template <class A> struct Result : Full<A> {
  bool nontemporal;
  template <class T> ISO_HD void store(T* p, Vec<A> v) const {
    if constexpr (std::is_same_v<A, T>)
      if (nontemporal) return store_nontemporal<A>(p, v);
    store_lanes<A>(p, v);
  }
};

// Like for_lanes(), for loops that store to `to` and sum nothing. From the second register on the stores are aligned,
// also in rows of odd width. f is called at one place only, so that all elements are rounded alike: the compiler may
// fuse multiplications and additions differently at another place.
template <class A, class T, class F> ISO_HD void for_results(bool nontemporal, const T* to, int64_t n, const F& f) {
  constexpr int64_t w = kLanes<A>;
  if (n < w) {
    if (n > 0) f(0, Short<A>{n});
    return;
  }
  const int64_t last = n - w;
  for (int64_t i = 0, next = w - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(T) % w);; next += w) {
    f(i, Result<A>{{}, nontemporal});
    if (i == last) return;
    i = std::min(next, last);
  }
}

}  // namespace
}  // namespace isonorm
