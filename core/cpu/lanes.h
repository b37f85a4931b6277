// Vector registers of this translation unit's instruction set as values, and loops over rows in them. If a row does not
// end with a register, its last register overlaps the one before it, and is masked in sums. Only rows shorter than a
// register have scalar code.
#pragma once

#include <array>
#include <cstring>
#include <type_traits>

#include "core/cpu/target.h"
#include "core/dtype.h"

namespace isonorm {
namespace {  // every instruction set compiles its own copy

constexpr int kVectorBytes = kTarget == Isa::avx512 ? 64 : kTarget == Isa::avx2 ? 32 : 16;

template <class A, int bytes> struct VectorType { typedef A type __attribute__((vector_size(bytes))); };
template <class A> using Vec = typename VectorType<A, kVectorBytes>::type;
template <class A> constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(A));
template <class A> using Mask = Vec<std::conditional_t<sizeof(A) == 4, int32_t, int64_t>>;

template <class A> ISO_HD Vec<A> splat(A x) {
  return x - Vec<A>{};  // x - 0 is x, also for -0
}

// One register of compute type A from memory of type T, and back.
template <class A, class T> ISO_HD Vec<A> load_lanes(const T* p) {
  if constexpr (std::is_same_v<A, T>) {
    Vec<A> v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  } else {
    typename VectorType<uint16_t, kVectorBytes / 2>::type half;
    std::memcpy(&half, p, sizeof(half));
    return std::bit_cast<Vec<float>>(__builtin_convertvector(half, Vec<uint32_t>) << 16);
  }
}
inline Vec<uint32_t> bits_of_bf16(Vec<float> v) {  // rounds like the constructor of bf16
  const Vec<uint32_t> u = std::bit_cast<Vec<uint32_t>>(v);
  const Vec<uint32_t> rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const Vec<int32_t> nan = v != v;
  return (rounded & ~std::bit_cast<Vec<uint32_t>>(nan)) | (0x7fffu & std::bit_cast<Vec<uint32_t>>(nan));
}
template <class A, class T> ISO_HD void store_lanes(T* p, Vec<A> v) {
  if constexpr (std::is_same_v<A, T>) {
    std::memcpy(p, &v, sizeof(v));
  } else {
    const auto half = __builtin_convertvector(bits_of_bf16(v), typename VectorType<uint16_t, kVectorBytes / 2>::type);
    std::memcpy(static_cast<void*>(p), &half, sizeof(half));
  }
}

// The lanes after a store to memory of type T and a load from it.
template <class T, class V> ISO_HD V round_lanes(V v) {
  if constexpr (std::is_same_v<T, bf16>) return std::bit_cast<V>(bits_of_bf16(v) << 16);
  return v;
}

// f of each lane; f is a scalar function that the compiler vectorises (core/formulas/math.h).
template <class A, class F> ISO_HD Vec<A> map_lanes(Vec<A> x, const F& f) {
  A in[kLanes<A>], out[kLanes<A>];
  std::memcpy(in, &x, sizeof(x));
#pragma omp simd
  for (int l = 0; l < kLanes<A>; ++l) out[l] = f(in[l]);
  std::memcpy(&x, out, sizeof(x));
  return x;
}

// A mask of the last `count` lanes.
template <class A> ISO_HD Mask<A> last_lanes(int64_t count) {
  using I = std::conditional_t<sizeof(A) == 4, int32_t, int64_t>;
  static constexpr auto table = [] {
    std::array<I, 2 * kLanes<A>> t{};
    for (int l = kLanes<A>; l < 2 * kLanes<A>; ++l) t[l] = -1;
    return t;
  }();
  Mask<A> m;
  std::memcpy(&m, table.data() + count, sizeof(m));
  return m;
}

// The registers that a loop over a row sees. Full: all lanes are new. Overlap: a full register whose last lanes alone
// are new. Short: the only register of a row that is shorter.
template <class A> struct Full {
  template <class T> ISO_HD Vec<A> load(const T* p) const { return load_lanes<A>(p); }
  template <class T> ISO_HD void store(T* p, Vec<A> v) const { store_lanes<A>(p, v); }
  ISO_HD Vec<A> keep(Vec<A> v) const { return v; }            // 0 in lanes that are not new
  ISO_HD Vec<A> choose(Vec<A> v, Vec<A>) const { return v; }  // the second one in lanes that are not new
};
template <class A> struct Overlap : Full<A> {
  Mask<A> fresh;
  ISO_HD Vec<A> keep(Vec<A> v) const { return std::bit_cast<Vec<A>>(std::bit_cast<Mask<A>>(v) & fresh); }
  ISO_HD Vec<A> choose(Vec<A> v, Vec<A> old) const { return fresh ? v : old; }
};
template <class A> struct Short {
  int64_t count;
  template <class T> ISO_HD Vec<A> load(const T* p) const {
    Vec<A> v{};
    for (int64_t l = 0; l < count; ++l) v[l] = A(p[l]);
    return v;
  }
  template <class T> ISO_HD void store(T* p, Vec<A> v) const {
    for (int64_t l = 0; l < count; ++l) p[l] = T(v[l]);
  }
  ISO_HD Mask<A> fresh() const { return ~last_lanes<A>(kLanes<A> - count); }
  ISO_HD Vec<A> keep(Vec<A> v) const { return std::bit_cast<Vec<A>>(std::bit_cast<Mask<A>>(v) & fresh()); }
  ISO_HD Vec<A> choose(Vec<A> v, Vec<A> old) const { return fresh() ? v : old; }
};

// f(i, lanes) for registers that cover the elements [0, n) of a row. Elements shared by two registers are visited
// twice, so a stored value may depend on them only through memory that f does not overwrite, and sums must use
// lanes.keep().
template <class A, class F> ISO_HD void for_lanes(int64_t n, const F& f) {
  constexpr int64_t w = kLanes<A>;
  int64_t i = 0;
  for (; i + w <= n; i += w) f(i, Full<A>{});
  if (i == n) return;
  if (n >= w)
    f(n - w, Overlap<A>{{}, last_lanes<A>(n - i)});
  else
    f(0, Short<A>{n});
}

// Sum over all lanes, by halves.
template <class A, int bytes = kVectorBytes> ISO_HD A sum_lanes(typename VectorType<A, bytes>::type v) {
  if constexpr (bytes == 2 * sizeof(A)) {
    return v[0] + v[1];
  } else {
    const auto half = std::bit_cast<std::array<typename VectorType<A, bytes / 2>::type, 2>>(v);
    return sum_lanes<A, bytes / 2>(half[0] + half[1]);
  }
}

// Largest lane, by halves.
template <class A, int bytes = kVectorBytes> ISO_HD A max_lanes(typename VectorType<A, bytes>::type v) {
  if constexpr (bytes == 2 * sizeof(A)) {
    return v[0] > v[1] ? v[0] : v[1];
  } else {
    const auto half = std::bit_cast<std::array<typename VectorType<A, bytes / 2>::type, 2>>(v);
    return max_lanes<A, bytes / 2>(half[0] > half[1] ? half[0] : half[1]);
  }
}

// N sums over a row: f(i, lanes, acc) adds its terms to acc[0 .. N). Four running registers for each sum hide the
// latency of addition.
template <class A, int N, class F> ISO_HD std::array<A, N> sum_row(int64_t n, const F& f) {
  constexpr int64_t w = kLanes<A>;
  Vec<A> acc[4][N] = {};
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w)
    for (int u = 0; u < 4; ++u) f(i + u * w, Full<A>{}, acc[u]);
  for (; i + w <= n; i += w) f(i, Full<A>{}, acc[0]);
  if (i < n) {
    if (n >= w)
      f(n - w, Overlap<A>{{}, last_lanes<A>(n - i)}, acc[1]);
    else
      f(0, Short<A>{n}, acc[1]);
  }
  std::array<A, N> sums;
  for (int k = 0; k < N; ++k) sums[k] = sum_lanes<A>((acc[0][k] + acc[1][k]) + (acc[2][k] + acc[3][k]));
  return sums;
}

}  // namespace
}  // namespace isonorm
