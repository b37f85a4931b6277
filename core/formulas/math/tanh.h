// tanh.
#pragma once

#include "core/formulas/math/exp.h"

namespace isonorm::math {

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
