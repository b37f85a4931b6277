// Every element-wise optimizer step: one struct per rule, compiled into the one loop over memory
// (core/cpu/optimizer.cpp). step(x, g, s) returns the new value of a weight. x = keep w is the weight after decoupled
// decay, g = gradient_scale gradient + l2 w, and s[0], s[1], ... is the weight's state, changed in place. A rule with
// kWrites = false leaves the weight unchanged.
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "core/formulas/hd.h"

namespace isonorm::rules {

// The state of weight k.
template <class A> struct State {
  A* const* tensors;
  int64_t k;
  ISO_HD A& operator[](int i) const { return tensors[i][k]; }
};

// NaN stays NaN, so that a broken gradient is noticed.
template <class A> ISO_HD A sign_of(A x) { return x > 0 ? A(1) : x < 0 ? A(-1) : x; }

struct Sgd {
  static constexpr int kStates = 0;
  static constexpr bool kWrites = true;
  double lr;
  template <class A> ISO_HD A step(A x, A g, State<A>) const { return x - A(lr) * g; }
};

// b = momentum b + take g;  w = x - lr (now g + ahead b)
struct Momentum {
  static constexpr int kStates = 1;
  static constexpr bool kWrites = true;
  double lr, momentum, take, now, ahead;
  template <class A> ISO_HD A step(A x, A g, State<A> s) const {
    const A b = s[0] = A(momentum) * s[0] + A(take) * g;
    return x - A(lr) * (A(now) * g + A(ahead) * b);
  }
};

struct Sign {
  static constexpr int kStates = 0;
  static constexpr bool kWrites = true;
  double lr;
  template <class A> ISO_HD A step(A x, A g, State<A>) const { return x - A(lr) * sign_of(g); }
};

// c = m + (1 - beta1) (g - m);  m += (1 - beta2) (g - m);  w = x - lr sign(c). Signum if beta1 = beta2.
struct Lion {
  static constexpr int kStates = 1;
  static constexpr bool kWrites = true;
  double lr, beta1, beta2;
  template <class A> ISO_HD A step(A x, A g, State<A> s) const {
    const A m = s[0], c = m + A(1 - beta1) * (g - m);
    s[0] = m + A(1 - beta2) * (g - m);
    return x - A(lr) * sign_of(c);
  }
};

// m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;  w = x - step_size m / (root_scale sqrt(v) + eps), with
// step_size = lr / (1 - beta1^t), root_scale = 1 / sqrt(1 - beta2^t)
struct Adam {
  static constexpr int kStates = 2;
  static constexpr bool kWrites = true;
  double beta1, beta2, eps, step_size, root_scale;

  // The rule of step t = 1, 2, ...
  static Adam at(int64_t t, double lr, double beta1, double beta2, double eps) {
    const double n = static_cast<double>(t);
    return {beta1, beta2, eps, lr / (1 - std::pow(beta1, n)), 1 / std::sqrt(1 - std::pow(beta2, n))};
  }
  template <class A> ISO_HD A ratio(A g, State<A> s) const {
    const A m = s[0] = s[0] + A(1 - beta1) * (g - s[0]);
    const A v = s[1] = A(beta2) * s[1] + A(1 - beta2) * (g * g);
    return A(step_size) * m / (std::sqrt(v) * A(root_scale) + A(eps));
  }
  template <class A> ISO_HD A step(A x, A g, State<A> s) const { return x - ratio(g, s); }
};

// v = alpha v + (1 - alpha) g^2;  centred: a += (1 - alpha) (g - a), r = sqrt(v - a^2), else r = sqrt(v);
// with momentum: b = momentum b + g / (r + eps), w = x - lr b;  else w = x - lr g / (r + eps). State v, a, b.
template <bool kCentered, bool kMomentum> struct Rmsprop {
  static constexpr int kStates = 1 + kCentered + kMomentum;
  static constexpr bool kWrites = true;
  double lr, alpha, eps, momentum;
  template <class A> ISO_HD A step(A x, A g, State<A> s) const {
    A v = s[0] = A(alpha) * s[0] + A(1 - alpha) * (g * g);
    if constexpr (kCentered) {
      const A a = s[1] = s[1] + A(1 - alpha) * (g - s[1]);
      v = v - a * a;
      v = v < 0 ? A(0) : v;  // may be negative by rounding if the gradient hardly changes
    }
    const A d = g / (std::sqrt(v) + A(eps));
    if constexpr (!kMomentum) return x - A(lr) * d;
    const A b = s[kStates - 1] = A(momentum) * s[kStates - 1] + d;
    return x - A(lr) * b;
  }
};

// sum += g^2;  w = x - lr g / (sqrt(sum) + eps)
struct Adagrad {
  static constexpr int kStates = 1;
  static constexpr bool kWrites = true;
  double lr, eps;
  template <class A> ISO_HD A step(A x, A g, State<A> s) const {
    const A sum = s[0] = s[0] + g * g;
    return x - A(lr) * g / (std::sqrt(sum) + A(eps));
  }
};

// s[0] += rest (g - s[0]): a running mean. The weight is unchanged.
struct Average {
  static constexpr int kStates = 1;
  static constexpr bool kWrites = false;
  double rest;
  template <class A> ISO_HD A step(A x, A g, State<A> s) const {
    s[0] = s[0] + A(rest) * (g - s[0]);
    return x;
  }
};

// s[2] = Adam's step + weight_decay x; s[0], s[1] are Adam's state. The weight is unchanged.
struct LambDirection {
  static constexpr int kStates = 3;
  static constexpr bool kWrites = false;
  Adam adam;
  double weight_decay;
  template <class A> ISO_HD A step(A x, A g, State<A> s) const {
    s[2] = adam.ratio(g, s) + A(weight_decay) * x;
    return x;
  }
};

// w = x - lr s[0]: a step along a direction computed before.
struct Along {
  static constexpr int kStates = 1;
  static constexpr bool kWrites = true;
  double lr;
  template <class A> ISO_HD A step(A x, A, State<A> s) const { return x - A(lr) * s[0]; }
};

}  // namespace isonorm::rules

namespace isonorm {
using UpdateRule =
    std::variant<rules::Sgd, rules::Momentum, rules::Sign, rules::Lion, rules::Adam, rules::Rmsprop<false, false>,
                 rules::Rmsprop<false, true>, rules::Rmsprop<true, false>, rules::Rmsprop<true, true>, rules::Adagrad,
                 rules::Average, rules::LambDirection, rules::Along>;
}  // namespace isonorm
