// The published update rules in f64, one number at a time: the reference for the optimizers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace isonorm::published {

using Numbers = std::vector<double>;

// A step of one parameter: weights, gradients, learning rate. A copy of the rule starts with the same state.
using Rule = std::function<void(Numbers&, const Numbers&, double)>;

template <class Published> Rule rule(Published published) {
  return [published](Numbers& w, const Numbers& g, double lr) mutable { published.step(w, g, lr); };
}

struct Sgd {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double dampening = 0;
  bool decoupled = false;
  Numbers b{};

  void step(Numbers& w, const Numbers& gradient, double lr) {
    const bool first = b.empty();
    b.resize(w.size(), 0);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = decoupled ? gradient[i] : gradient[i] + weight_decay * w[i];
      if (decoupled) w[i] -= lr * weight_decay * w[i];
      b[i] = first ? g : momentum * b[i] + (1 - dampening) * g;
      w[i] -= lr * (nesterov ? g + momentum * b[i] : b[i]);
    }
  }
};

inline double sign(double x) { return (x > 0) - (x < 0); }

// Chen et al.'s algorithm 2; if both betas are equal, Bernstein et al.'s algorithm 1 (signSGD, Signum).
struct Lion {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  Numbers m{};

  void step(Numbers& w, const Numbers& g, double lr) {
    m.resize(w.size(), 0);
    for (size_t i = 0; i < w.size(); ++i) {
      const double c = beta1 * m[i] + (1 - beta1) * g[i];
      w[i] -= lr * (sign(c) + weight_decay * w[i]);
      m[i] = beta2 * m[i] + (1 - beta2) * g[i];
    }
  }
};

struct Rmsprop {
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
  Numbers v{}, a{}, b{};

  void step(Numbers& w, const Numbers& gradient, double lr) {
    for (Numbers* s : {&v, &a, &b}) s->resize(w.size(), 0);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + weight_decay * w[i];
      v[i] = alpha * v[i] + (1 - alpha) * g * g;
      a[i] = alpha * a[i] + (1 - alpha) * g;
      const double variance = centered ? std::max(0.0, v[i] - a[i] * a[i]) : v[i];
      b[i] = momentum * b[i] + g / (std::sqrt(variance) + eps);
      w[i] -= lr * b[i];
    }
  }
};

struct Adagrad {
  double lr_decay = 0, weight_decay = 0, initial = 0, eps = 1e-10;
  Numbers s{};
  int t = 0;

  void step(Numbers& w, const Numbers& gradient, double lr) {
    s.resize(w.size(), initial);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + weight_decay * w[i];
      s[i] += g * g;
      w[i] -= lr / (1 + t * lr_decay) * g / (std::sqrt(s[i]) + eps);
    }
    ++t;
  }
};

// Kingma and Ba's algorithm 1; with `decoupled`, Loshchilov and Hutter's weight decay times lr.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
  Numbers m{}, v{};
  int t = 0;

  Numbers direction(const Numbers& g) {
    for (Numbers* s : {&m, &v}) s->resize(g.size(), 0);
    ++t;
    Numbers u(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      u[i] = m[i] / (1 - std::pow(beta1, t)) / (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + eps);
    }
    return u;
  }
  void step(Numbers& w, Numbers g, double lr) {
    for (size_t i = 0; i < w.size() && !decoupled; ++i) g[i] += weight_decay * w[i];
    const Numbers u = direction(g);
    for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * (u[i] + (decoupled ? weight_decay * w[i] : 0));
  }
};

inline double norm(const Numbers& x) {
  long double sum = 0;
  for (double v : x) sum += static_cast<long double>(v) * v;
  return static_cast<double>(std::sqrt(sum));
}

// You et al. 2017, algorithm 1, for one layer.
struct Lars {
  double momentum = 0.9, weight_decay = 0, trust = 1e-3;
  bool adapt = true;
  Numbers v{};

  void step(Numbers& w, const Numbers& g, double lr) {
    v.resize(w.size(), 0);
    const double w_norm = norm(w), g_norm = norm(g);
    const double local = adapt && w_norm > 0 && g_norm > 0 ? trust * w_norm / (g_norm + weight_decay * w_norm) : 1;
    for (size_t i = 0; i < w.size(); ++i) {
      v[i] = momentum * v[i] + lr * local * (g[i] + weight_decay * w[i]);
      w[i] -= v[i];
    }
  }
};

// You et al. 2020, algorithm 2, for one layer.
struct Lamb {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 1e-2;
  bool adapt = true;
  Adam adam{beta1, beta2, eps};

  void step(Numbers& w, const Numbers& g, double lr) {
    Numbers u = adam.direction(g);
    for (size_t i = 0; i < w.size(); ++i) u[i] += weight_decay * w[i];
    const double ratio = adapt && norm(w) > 0 && norm(u) > 0 ? norm(w) / norm(u) : 1;
    for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * ratio * u[i];
  }
};

// Numbers in (-1, 1) without pattern: splitmix64 of (seed, i).
inline Numbers numbers(int64_t n, uint64_t seed) {
  Numbers x(n);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t z = seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(i) * 0xbf58476d1ce4e5b9u + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    x[i] = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
  }
  return x;
}

}  // namespace isonorm::published
