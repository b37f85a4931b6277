// The published update rules, one number at a time in f64: what the optimizers are compared with.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace isonorm::published {

struct Sgd {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  std::vector<double> b{};

  void step(std::vector<double>& w, const std::vector<double>& gradient, double lr) {
    b.resize(w.size(), 0);
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + weight_decay * w[i];
      b[i] = momentum * b[i] + g;
      w[i] -= lr * (nesterov ? g + momentum * b[i] : b[i]);
    }
  }
};

// Kingma and Ba's algorithm 1; with `decoupled`, Loshchilov and Hutter's weight decay times lr.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
  std::vector<double> m{}, v{};
  int t = 0;

  void step(std::vector<double>& w, const std::vector<double>& gradient, double lr) {
    m.resize(w.size(), 0);
    v.resize(w.size(), 0);
    ++t;
    for (size_t i = 0; i < w.size(); ++i) {
      double g = gradient[i];
      if (decoupled)
        w[i] -= lr * weight_decay * w[i];
      else
        g += weight_decay * w[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(beta1, t)), v_hat = v[i] / (1 - std::pow(beta2, t));
      w[i] -= lr * m_hat / (std::sqrt(v_hat) + eps);
    }
  }
};

// Numbers in (-1, 1) without pattern: splitmix64 of (seed, i).
inline std::vector<double> numbers(int64_t n, uint64_t seed) {
  std::vector<double> x(n);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t z = seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(i) * 0xbf58476d1ce4e5b9u + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    x[i] = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
  }
  return x;
}

}  // namespace isonorm::published
