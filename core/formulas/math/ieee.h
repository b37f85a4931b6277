// The parts of an IEEE 754 number, and the few operations on them that the functions of core/formulas/math.h need.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/formulas/hd.h"

namespace isonorm::math {

/// Layout of a type: `mantissa` stored bits under an exponent biased by `bias`.
template <class T> struct Ieee;

template <> struct Ieee<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float infinity = __builtin_huge_valf(), smallest_normal = 0x1p-126f;
};

template <> struct Ieee<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double infinity = __builtin_huge_val(), smallest_normal = 0x1p-1022;
};

template <class T> inline constexpr bool kIsFloat = sizeof(T) == 4;

/// One of two constants, by type.
template <class T> ISO_HD constexpr T pick(float f, double d) { return kIsFloat<T> ? T(f) : T(d); }

template <class T> ISO_HD constexpr typename Ieee<T>::Bits to_bits(T x) {
  return __builtin_bit_cast(typename Ieee<T>::Bits, x);
}

template <class T> ISO_HD constexpr T from_bits(typename Ieee<T>::Bits b) { return __builtin_bit_cast(T, b); }

/// 2^(biased - bias), for 0 < biased < 2 bias + 1. Higher bits of `biased` are ignored.
template <class T> ISO_HD constexpr T exp2_biased(typename Ieee<T>::Bits biased) {
  return from_bits<T>(biased << Ieee<T>::mantissa);
}

/// 1.5 * 2^mantissa: numbers near it are integers, and their low bits are this integer.
template <class T> inline constexpr T kIntegerShift = pick<T>(0x1.8p23f, 0x1.8p52);

/// ln2 in two parts, the first short enough that its product with an exponent is exact.
template <class T> inline constexpr T kLn2High = pick<T>(0.69314575f, 0.6931471803691238);
template <class T> inline constexpr T kLn2Low = pick<T>(1.4286068e-06f, 1.9082149292705877e-10);

/// min and max. They return a NaN in x, since the comparison is false.
template <class T> ISO_HD T clamp_above(T x, T hi) { return x > hi ? hi : x; }
template <class T> ISO_HD T clamp_below(T x, T lo) { return x < lo ? lo : x; }

/// a^2 - z to all digits, for z = a^2 rounded: by a fused multiply-add, or from products of the halves of a (Dekker, "A
/// floating-point technique for extending the available precision", 1971).
template <class T> ISO_HD T square_error(T a, T z) {
#if defined(__FMA__) || defined(__CUDA_ARCH__)
  return std::fma(a, a, -z);
#else
  using Bits = typename Ieee<T>::Bits;
  const T h = from_bits<T>(to_bits(a) & (~Bits(0) << (Ieee<T>::mantissa + 2) / 2)), l = a - h;
  return ((h * h - z) + T(2) * h * l) + l * l;
#endif
}

/// c0 + x (c1 + x (c2 + ...)) by Horner's rule. CUDA kernels call std::fma, because most are compiled without
/// contraction (cmake/gpu.cmake).
template <class T> ISO_HD T poly(T, double c0) { return T(c0); }
template <class T, class... C> ISO_HD T poly(T x, double c0, C... c) {
#ifdef __CUDA_ARCH__
  return std::fma(x, poly(x, c...), T(c0));
#else
  return T(c0) + x * poly(x, c...);
#endif
}

}  // namespace isonorm::math
