// exp, exp2, expm1, sigmoid: x = k ln2 + r with integer k and |r| <= ln2 / 2, and exp(x) = 2^k exp(r).
#pragma once

#include "core/formulas/math/ieee.h"

namespace isonorm::math {

/// x = k ln2 + r. k is stored as a number and, as 2 bias + k, in the low mantissa bits of n.
template <class T> struct ExpParts {
  T k, r;
  typename Ieee<T>::Bits n;
};

/// Reduces x + tail, |x| < 1100 (float: 150) and tail too small to change k. ln2 is taken in two parts, the first short
/// enough that its product with k is exact (Cody and Waite, "Software Manual for the Elementary Functions", 1980).
template <class T> ISO_HD ExpParts<T> reduce_exp(T x, T tail = 0) {
  constexpr T log2e = T(1.4426950408889634);
  constexpr T shift = kIntegerShift<T> + 2 * Ieee<T>::bias;
  const T shifted = x * log2e + shift;
  const T k = shifted - shift, high = x - k * kLn2High<T>;
  return {k, high - (k * kLn2Low<T> - tail), to_bits(shifted)};
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln2 / 2.
template <class T> ISO_HD T exp_q(T r) {
  if constexpr (kIsFloat<T>)
    return poly(r, 0.49999997, 0.16666539, 0.041667745, 0.008367064, 0.0013839186);
  else
    return poly(r, 0.5000000000000006, 0.16666666666666616, 0.0416666666665723, 0.008333333333364933,
                0.0013888888933023384, 0.0001984126978864361, 2.4801503522892247e-05, 2.755733159345039e-06,
                2.76267287202196e-07, 2.5081775438065006e-08);
}

/// y 2^k, rounded once. 2^k is applied as two factors, since k may be outside the range of an exponent.
template <class T> ISO_HD T scale(T y, typename Ieee<T>::Bits n) {
  const auto half = n >> 1;
  return y * exp2_biased<T>(half) * exp2_biased<T>(n - half);
}

/// y 2^k for k <= 0, rounded once: the second factor is a constant.
template <class T> ISO_HD T scale_down(T y, typename Ieee<T>::Bits n) {
  constexpr int bias = Ieee<T>::bias, up = bias / 2;
  return y * exp2_biased<T>(n - bias + up) * exp2_biased<T>(bias - up);
}

/// exp(x) for x <= 0 above -1100 (float: -150).
template <class T> ISO_HD T exp_nonpositive(T x) {
  const auto [k, r, n] = reduce_exp(x);
  return scale_down(1 + (r + r * r * exp_q(r)), n);
}

/// exp(x) for |x| <= 708 (float: 87), so that 2^k is a normal number.
template <class T> ISO_HD T exp_inside(T x) {
  const auto [k, r, n] = reduce_exp(x);
  return (1 + (r + r * r * exp_q(r))) * exp2_biased<T>(n - Ieee<T>::bias);
}

/// exp(x).
template <class T> ISO_HD T exp(T x) {
  const auto [k, r, n] = reduce_exp(clamp_below(clamp_above(x, pick<T>(89, 710)), pick<T>(-104, -746)));
  return scale(1 + (r + r * r * exp_q(r)), n);
}

/// 2^x = 2^k exp((x - k) ln2) with k nearest to x; exact if x is an integer.
template <class T> ISO_HD T exp2(T x) {
  const T a = clamp_below(clamp_above(x, pick<T>(129, 1025)), pick<T>(-151, -1076));
  constexpr T shift = kIntegerShift<T> + 2 * Ieee<T>::bias;
  const T shifted = a + shift, r = (a - (shifted - shift)) * T(0.69314718055994530942);
  return scale(1 + (r + r * r * exp_q(r)), to_bits(shifted));
}

/// exp(x) - 1 = 2^k ((1 - 2^-k) + r + r^2 q(r)); the first sum is kept exact (Dekker's Fast2Sum).
template <class T> ISO_HD T expm1(T x) {
  const T a = clamp_below(clamp_above(x, pick<T>(89, 710)), pick<T>(-17.5f, -38));
  const auto [k, r, n] = reduce_exp(a);
  const T unscale = k > 60 ? T(0) : exp2_biased<T>(3 * Ieee<T>::bias - n);
  const T base = 1 - unscale;
  const T sum = base + r;
  const T y = scale(sum + (((base - sum) + r) + r * r * exp_q(r)), n);
  return x == 0 ? x : y;
}

/// 1 / (1 + exp(-x)). With e = exp(-|x|), which cannot overflow, it is 1 / (1 + e) or e / (1 + e). The rounding errors
/// de of e and d(1 + e) of 1 + e are kept and correct the quotient y: y + (de - y d(1 + e)) / (1 + e).
template <class T> ISO_HD T sigmoid(T x) {
  const auto [k, r, n] = reduce_exp(clamp_below(-std::abs(x), pick<T>(-104, -746)));
  const T p = r + r * r * exp_q(r), m = 1 + p;
  const T e = scale_down(m, n), e_low = scale_down((1 - m) + p, n);
  const T sum = 1 + e, sum_low = (1 - sum) + e + e_low;
  const bool negative = x < 0;
  const T y = (negative ? e : T(1)) / sum;
  return y + ((negative ? e_low : T(0)) - y * sum_low) * (T(1.5) - T(0.5) * sum);
}

// tanh.

/// tanh(x). With a = |x|: for a < 0.55, a + a z p(z) / q(z) with z = a^2; above, 1 - 2 / (exp(2 a) + 1). Each of the
/// three terms of base + numerator / denominator is selected, so that both cases share one division.
template <class T> ISO_HD T tanh(T x) {
  const T a = clamp_above(std::abs(x), pick<T>(10, 20)), z = a * a;
  const bool small = a < T(0.55);
  T p, q;
  if constexpr (kIsFloat<T>) {
    p = poly(z, -0.33333322, -0.0015517898);
    q = poly(z, 1.0, 0.40464807);
  } else {
    p = poly(z, -0.3333333333333333, -0.02050042808984586, -0.00019925023120219494);
    q = poly(z, 1.0, 0.4615012842695335, 0.02329350249674985, 0.00020661105782112833);
  }
  const T e = exp_inside(2 * a);
  const T y = (small ? a : T(1)) + (small ? a * z * p : T(-2)) / (small ? q : e + 1);
  return std::copysign(y, x);
}

}  // namespace isonorm::math
