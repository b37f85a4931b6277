// Non-temporal stores: large results go to memory past the caches. An ordinary store first reads the line that it is
// about to overwrite, which for a kernel bound by memory is a third or a quarter of all that it moves. Values do not
// depend on it.
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

// Whether a contiguous result, computed in rows of `width`, is stored past the caches: from a size on where the next op
// would not find most of it in one (docs/kernels.md). Its rows are whole lines, for a line that is stored in parts
// is slow past the caches, and of the type that it is computed in, so that a register is stored whole.
template <class T> bool passes_caches(const Tensor& out, int64_t width) {
  constexpr int64_t least = int64_t{8} << 20, line = 64, size = sizeof(T);
  return std::is_same_v<T, acc_t<T>> && out.numel() * size >= least && width * size % line == 0 &&
         reinterpret_cast<uintptr_t>(out.data<T>()) % line == 0;
}

// A register past the caches; `to` is a multiple of its size.
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

// Brings the line of p into the first-level cache; rows of bf16 are bound by their conversion.
template <class T> ISO_HD void bring(const T* p) {
  if constexpr (!std::is_same_v<T, bf16>) __builtin_prefetch(p);
}

// What a thread has stored past the caches comes before what it stores later.
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

// As for_lanes, for loops that store to `to` and sum nothing: from the second register on the stores are aligned, also
// in the rows of an odd width. There is one place that calls f, so that all elements are rounded alike: how the
// compiler fuses multiplications and additions may differ between places.
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
