// erf, GELU and its tanh form with their derivatives.
#pragma once

#include "core/formulas/math/exp.h"

namespace isonorm::math {

/// erf(x) = 2/sqrt(pi) times the integral of exp(-t^2) over 0..x. With a = |x|: a + a p(a^2) for a < 1, and above that
/// 1 - exp(-p(a - 1)) with p = -log(erfc), which needs no division. From 6 (float: 4) on it is 1.
template <class T> ISO_HD T erf(T x) {
  const T a = std::abs(x), z = a * a, t = clamp_above(a, pick<T>(3.95f, 5.95)) - 1;
  T small, tail;
  if constexpr (kIsFloat<T>) {
    small = poly(z, 0.12837917, -0.3761263, 0.11283618, -0.026855126, 0.0051907334, -0.00080307503, 7.920304e-05);
    tail = poly(t, 1.8496056, 2.6389675, 0.84310687, 0.041564625, -0.010049558, 0.0020164503, -0.00029301574,
                2.30572e-05, -2.1203063e-07);
  } else {
    small = poly(z, 0.12837916709551256, -0.376126389031834, 0.11283791670941427, -0.026866170642976344,
                 0.005223977607022888, -0.0008548326046804807, 0.00012055298756613714, -1.4924835578594958e-05,
                 1.644886882000605e-06, -1.622082928048239e-07, 1.3777557475610289e-08, -7.908782698030358e-10);
    tail =
        poly(t, 1.8496055099332482, 2.6389675142347913, 0.8431072563584867, 0.041561098046495534, -0.010033825434025735,
             0.001977903020077893, -0.00023732471065137674, -2.627031927097514e-05, 2.71408183364671e-05,
             -9.576410975715856e-06, 2.0166739293885555e-06, -9.967683033100481e-08, -1.304571119679089e-07,
             7.110203754013603e-08, -2.32638275134768e-08, 5.597379601371204e-09, -1.0217816016736404e-09,
             1.388312809721742e-10, -1.3275247519531955e-11, 7.966648716341916e-13, -2.2528405975284015e-14);
  }
  const T y = a < 1 ? a + a * small : 1 - exp_inside(-tail);
  return std::copysign(y, x);
}

// GELU and its tanh form with their derivatives (Hendrycks and Gimpel, arXiv:1606.08415).

/// The normal distribution beyond a = |x|: phi(a) sqrt(2 pi) = e 2^k, and Phi(-a) = e 2^k p / q. k is stored in n,
// encoded as in ExpParts. scale_down() applies 2^k last, because the result may be subnormal.
template <class T> struct NormalTail {
  T a, e, p, q;
  typename Ieee<T>::Bits n;
};

/// e = exp(-a^2 / 2 - k ln2) and the rational function p / q for exp(a^2 / 2) Phi(-a). The relative accuracy of the
// tail needs a^2 to more digits than T has: z and its rounding error. a is clamped where Phi(-a) becomes 0 in T, so
// that infinity is never multiplied by 0.
template <class T> ISO_HD NormalTail<T> normal_tail(T x) {
  const T a = clamp_above(std::abs(x), pick<T>(14.7f, 39)), z = a * a;
  const auto [k, r, n] = reduce_exp(T(-0.5) * z, T(-0.5) * square_error(a, z));
  const T e = 1 + (r + r * r * exp_q(r));
  if constexpr (kIsFloat<T>)
    return {a, e, poly(a, 0.5, 0.5077118, 0.2507282, 0.07137502, 0.011658288, 0.00089110294),
            poly(a, 1.0, 1.8133082, 1.4482671, 0.65760666, 0.18114986, 0.029222807, 0.0022336666), n};
  else
    return {a, e,
            poly(a, 0.5, 0.8279452723420967, 0.6796420696498692, 0.35737113320612357, 0.13205940520378495,
                 0.03567240906995346, 0.007124018462547124, 0.0010399170597017793, 0.00010659722889764984,
                 6.977856938434289e-06, 2.2425473187941607e-07),
            poly(a, 1.0, 2.453775105487059, 2.8171134116502774, 2.0015475311228967, 0.9801757348277872,
                 0.34835231987174137, 0.09198917320934813, 0.018123341479632363, 0.0026241763988220524,
                 0.00026776175120064616, 1.7490893498239328e-05, 5.6212325164861e-07),
            n};
}

/// x Phi(x) = x (1 + erf(x / sqrt(2))) / 2 = max(x, 0) - |x| Phi(-|x|).
template <class T> ISO_HD T gelu(T x) {
  const auto [a, e, p, q, n] = normal_tail(x);
  return (x < 0 ? T(0) : x) - scale_down(a * e * (p / q), n);
}

/// d/dx gelu = Phi(x) + x phi(x) = Phi(-|x|) - |x| phi(x) for x < 0, and 1 minus this for x > 0.
template <class T> ISO_HD T gelu_grad(T x) {
  const auto [a, e, p, q, n] = normal_tail(x);
  const T y = scale_down(e * (p / q - a * T(0.39894228040143268)), n);
  return x < 0 ? y : 1 - y;
}

/// The parts of the tanh form beyond a = |x|: e = exp(-v), v = 2 sqrt(2/pi) (a + 0.044715 a^3), and v'(a). Its tail is
// sigmoid(-v) = e / (1 + e), since (1 + tanh(v / 2)) / 2 = sigmoid(v). a is clamped where e becomes 0 in T.
template <class T> struct TanhTail { T a, e, dv; };

template <class T> ISO_HD TanhTail<T> tanh_tail(T x) {
  const T a = clamp_above(std::abs(x), pick<T>(10.8f, 21.6)), z = a * a;
  return {a, exp_nonpositive(-a * (T(1.5957691216057308) + T(0.07135481627260025) * z)),
          T(1.5957691216057308) + T(0.21406444881780073) * z};
}

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 = max(x, 0) - |x| sigmoid(-v).
template <class T> ISO_HD T gelu_tanh(T x) {
  const auto [a, e, dv] = tanh_tail(x);
  return (x < 0 ? T(0) : x) - a * e / (1 + e);
}

/// d/dx gelu_tanh: with s = sigmoid(-v) it is s - |x| s (1 - s) v' for x < 0, and 1 minus this for x > 0.
template <class T> ISO_HD T gelu_tanh_grad(T x) {
  const auto [a, e, dv] = tanh_tail(x);
  const T inverse = 1 / (1 + e);
  const T y = e * inverse * (1 - a * dv * inverse);
  return x < 0 ? y : 1 - y;
}

/// The two forms as types.
struct ErfGelu {
  template <class T> ISO_HD static T value(T x) { return gelu(x); }
  template <class T> ISO_HD static T slope(T x) { return gelu_grad(x); }
};
struct TanhGelu {
  template <class T> ISO_HD static T value(T x) { return gelu_tanh(x); }
  template <class T> ISO_HD static T slope(T x) { return gelu_tanh_grad(x); }
};

}  // namespace isonorm::math
