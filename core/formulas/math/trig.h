// sin, cos: x = k pi/2 + r with integer k and |r| <= pi/4; k mod 4 selects the answer among +-sin(r), +-cos(r).
//
// Up to |x| = kTrigExact the reduction is exact to the last digit. Beyond it, the result is for an x changed in its
// last digits (error at most |x| eps). From 1e15 on, where neighbouring doubles are an eighth apart, it is for x = 0.
// If you need more, call std::sin, outside of the vectorised loop.
#pragma once

#include "core/formulas/math/ieee.h"

namespace isonorm::math {

inline constexpr double kTrigExact = 1.6e6;

/// sin(x + quarter pi/2), quarter in 0..3. pi/2 is taken in three parts; the products of the first two with k < 2^20
/// are exact.
ISO_HD double sin_quarter(double x, std::uint64_t quarter) {
  constexpr double two_over_pi = 0.63661977236758134;
  constexpr double c1 = 1.5707963267341256, c2 = 6.077100506303966e-11, c3 = 2.0222662487959506e-21;
  x = std::abs(x) < 1e15 ? x : x - x;  // NaN if x is not finite
  const double shifted = x * two_over_pi + kIntegerShift<double>;
  const double k = shifted - kIntegerShift<double>;
  const double w = x - k * c1, d = w - k * c2;
  const double r = d + (((w - d) - k * c2) - k * c3), z = r * r;
  const double s = poly(z, -0.16666666666666632, 0.008333333333322455, -0.00019841269829813416, 2.755731368757301e-06,
                        -2.5050756714415277e-08, 1.5896681859099016e-10);
  const double c = poly(z, 0.0416666666666666, -0.0013888888888874441, 2.480158728963631e-05, -2.755731438746623e-07,
                        2.087572705795053e-09, -1.1359802385672989e-11);
  const double half = 0.5 * z, one_half = 1 - half;
  const double sine = r + r * z * s, cosine = one_half + (((1 - one_half) - half) + z * z * c);
  const std::uint64_t q = to_bits(shifted) + quarter;
  return from_bits<double>(to_bits((q & 1) != 0 ? cosine : sine) ^ ((q & 2) << 62));
}

/// sin(x). For a float the computation is in double, because 24 bits are too few for the range reduction.
template <class T> ISO_HD T sin(T x) {
  const double y = sin_quarter(static_cast<double>(x), 0);
  return x == 0 ? x : static_cast<T>(y);
}

/// cos(x).
template <class T> ISO_HD T cos(T x) { return static_cast<T>(sin_quarter(static_cast<double>(x), 1)); }

}  // namespace isonorm::math
