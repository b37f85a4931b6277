// Random values of each distribution, from an element's bits, computed in f64 and rounded once: the same bits on
// every device. Code that generates results must be compiled without contraction of products into fused multiply-adds.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "core/formulas/math.h"
#include "core/formulas/philox.h"
#include "core/random.h"

namespace isonorm {

// The largest T below hi.
template <class T> T previous(double hi) {
  if constexpr (std::is_same_v<T, bf16>) {
    bf16 t = static_cast<float>(hi);
    if (static_cast<double>(t) < hi) return t;
    // One step down: decrements the bits of positive numbers and increments them for negative ones; below 0 is the
    // smallest negative number.
    t.bits = static_cast<uint16_t>(hi > 0 ? t.bits - 1 : hi < 0 ? t.bits + 1 : 0x8001);
    return t;
  } else {
    const T t = static_cast<T>(hi);
    return static_cast<double>(t) < hi ? t : std::nextafter(t, -std::numeric_limits<T>::infinity());
  }
}

// lo + (hi - lo) u, kept below hi if rounding would reach it.
template <class T> struct Uniform {
  double lo, hi;
  T top;
  Uniform(double lo, double hi) : lo(lo), hi(hi), top(previous<T>(hi)) {}
  ISO_HD T operator()(uint64_t bits) const {
    const T v = static_cast<T>(static_cast<acc_t<T>>(lo + (hi - lo) * unit_interval(bits)));
    return static_cast<double>(v) < hi ? v : top;
  }
};

// -ln(1 - u).
template <class T> struct Exponential {
  ISO_HD T operator()(uint64_t bits) const {
    return static_cast<T>(static_cast<acc_t<T>>(-math::log(1 - unit_interval(bits))));
  }
};

// 1 if u < p, else 0.
template <class T> struct Bernoulli {
  double p;
  ISO_HD T operator()(uint64_t bits) const { return static_cast<T>(unit_interval(bits) < p ? 1 : 0); }
};

// lo + floor((hi - lo) bits / 2^64).
struct Integers {
  uint64_t lo, range;
  Integers(int64_t lo, int64_t hi)
      : lo(static_cast<uint64_t>(lo)), range(static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo)) {}
  ISO_HD int64_t operator()(uint64_t bits) const { return static_cast<int64_t>(lo + below(range, bits)); }
};

// Two independent standard normal numbers from two uniform ones (Box and Muller 1958).
ISO_HD void box_muller(double u0, double u1, double& z0, double& z1) {
  constexpr double two_pi = 6.283185307179586;
  const double radius = std::sqrt(-2 * math::log(1 - u0)), angle = two_pi * u1;
  z0 = radius * math::cos(angle);
  z1 = radius * math::sin(angle);
}

// mean + deviation z of a standard normal number z.
template <class T> struct Normal {
  double mean, deviation;
  ISO_HD T operator()(double z) const { return static_cast<T>(static_cast<acc_t<T>>(mean + deviation * z)); }
};

// Element e: the first normal number inside [lo, hi] among the pairs in block e of subsequences 0, 1, 2, ..., rounded
// to the nearest value of T inside.
template <class T> struct TruncatedNormal {
  double mean, deviation, lo, hi;
  double low, high;  // least and largest T inside: rounding must not leave the interval

  // Throws if no T is inside.
  TruncatedNormal(double mean, double deviation, double lo, double hi)
      : mean(mean), deviation(deviation), lo(lo), hi(hi) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    low = -static_cast<double>(previous<T>(std::nextafter(-lo, inf)));
    high = static_cast<double>(previous<T>(std::nextafter(hi, inf)));
    check(low <= high, "truncated_normal: no ", dtype_of<T>, " lies in [", lo, ", ", hi, ']');
  }
  ISO_HD T operator()(Generator state, int64_t e) const {
    for (uint64_t subsequence = 0;; ++subsequence) {
      const PhiloxBlock b = philox(state.seed, state.offset + static_cast<uint64_t>(e), subsequence);
      double z[2];
      box_muller(unit_interval(b.wide(0)), unit_interval(b.wide(1)), z[0], z[1]);
      for (int i = 0; i < 2; ++i) {
        const double v = mean + deviation * z[i];
        if (v >= lo && v <= hi) return static_cast<T>(static_cast<acc_t<T>>(v < low ? low : v > high ? high : v));
      }
    }
  }
};

// x / (1 - p) if the 32 bits are >= p 2^32, else 0. Computed in A.
template <class A> struct Dropout {
  uint32_t threshold;
  A scale;
  ISO_HD explicit Dropout(double p)
      : threshold(static_cast<uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1))), scale(static_cast<A>(1 / (1 - p))) {}
  ISO_HD A operator()(A x, uint32_t bits) const {
    const A v = x * scale;
    return bits >= threshold ? v : A(0);
  }
};

}  // namespace isonorm
