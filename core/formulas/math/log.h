// log, log2, log1p, softplus: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log(x) = k ln2 + log(1 + f).
#pragma once

#include "core/formulas/math/exp.h"

namespace isonorm::math {

/// x = 2^k (1 + f). k is stored as a number and, as k + bias, in `biased`.
template <class T> struct LogParts {
  T k, f;
  typename Ieee<T>::Bits biased;
};

/// k and f of a positive normal number. The exponent becomes a number as the low bits of a number near 2^mantissa.
template <class T> ISO_HD LogParts<T> reduce_log(T x) {
  using Bits = typename Ieee<T>::Bits;
  constexpr T integer = pick<T>(0x1p23f, 0x1p52), root_half = T(0.70710678118654752);
  constexpr Bits mask = (Bits(1) << Ieee<T>::mantissa) - 1;
  const Bits b = to_bits(x) + (to_bits(T(1)) - to_bits(root_half));
  const Bits biased = b >> Ieee<T>::mantissa;
  const T k = from_bits<T>(biased | to_bits(integer)) - (integer + Ieee<T>::bias);
  return {k, from_bits<T>((b & mask) + to_bits(root_half)) - 1, biased};
}

/// k ln2 + log(1 + f + tail), |tail| <= ulp(1). The large term f is added last, so only its own rounding counts.
template <class T> ISO_HD T combine_log(T k, T f, T tail = 0) {
  const T half_square = T(0.5) * f * f;
  if constexpr (kIsFloat<T>) {  // log(1 + f) = f - f^2 / 2 + f^3 p(f)
    const T p = poly(f, 0.33333313, -0.25000164, 0.20002219, -0.16659534, 0.1420985, -0.12546913, 0.12103575,
                     -0.10930923, 0.0536916);
    return k * kLn2High<T> + (f - (half_square - (f * f * (f * p) + (k * kLn2Low<T> + tail))));
  } else {  // with s = f / (2 + f): log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + s^2 r(s^2))
    const T s = f / (2 + f), z = s * s;
    const T r = poly(z, 0.6666666666666735, 0.39999999999409347, 0.28571428743688826, 0.22222198428647905,
                     0.18183572375976648, 0.15313831539770123, 0.14798265819716475);
    return k * kLn2High<T> + (f - (half_square - (s * (half_square + z * r) + (k * kLn2Low<T> + tail))));
  }
}

/// y for 0 < x < infinity, otherwise log's special values.
template <class T> ISO_HD T select_log(T x, T y) {
  constexpr T inf = Ieee<T>::infinity;
  const T positive = x < inf ? y : x;
  const T other = x == 0 ? -inf : T(__builtin_nan(""));
  return x > 0 ? positive : other;
}

/// log(x), natural.
template <class T> ISO_HD T log(T x) {
  constexpr T lift = pick<T>(0x1p24f, 0x1p54), lifted = pick<T>(24, 54);
  const bool subnormal = x < Ieee<T>::smallest_normal;
  const auto [k, f, biased] = reduce_log(subnormal ? x * lift : x);
  return select_log(x, combine_log(subnormal ? k - lifted : k, f));
}

/// log(x) to base 2, k + log(1 + f) / ln2; exact if x is a power of 2.
template <class T> ISO_HD T log2(T x) {
  constexpr T lift = pick<T>(0x1p24f, 0x1p54), lifted = pick<T>(24, 54);
  const bool subnormal = x < Ieee<T>::smallest_normal;
  const auto [k, f, biased] = reduce_log(subnormal ? x * lift : x);
  const T whole = subnormal ? k - lifted : k;
  return select_log(x, whole + combine_log(T(0), f) * T(1.4426950408889634074));
}

/// log(1 + x). The rounding error c of the sum u = fl(1 + x) is computed exactly (Knuth's TwoSum) and added to first
/// order: log(u + c) = log(u) + c / u, with u = 2^k (1 + f) and 1 / (1 + f) = 1 - f + f^2 to the few bits that matter.
template <class T> ISO_HD T log1p(T x) {
  const T u = 1 + x, b = u - 1, c = (1 - (u - b)) + (x - b);
  const auto [k, f, biased] = reduce_log(u);
  const T tail = k > 60 ? T(0) : c * exp2_biased<T>(2 * Ieee<T>::bias - biased);
  const T y = select_log(u, combine_log(k, f, tail * (1 - f + f * f)));
  return x == 0 ? x : y;
}

/// log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|). Like log1p, but 1 + e is in 1..2, so k is 0 or 1.
template <class T> ISO_HD T softplus(T x) {
  const T e = exp_nonpositive(clamp_below(-std::abs(x), pick<T>(-104, -746)));
  const T u = 1 + e, k = u > T(1.4142135623730951) ? T(1) : T(0), unscale = 1 - T(0.5) * k;
  const T f = u * unscale - 1, tail = (e - (u - 1)) * unscale;
  return (x > 0 ? x : T(0)) + combine_log(k, f, tail * (1 - f + f * f));
}

}  // namespace isonorm::math
