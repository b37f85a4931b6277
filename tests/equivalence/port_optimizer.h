// AdamW and its schedule, ported by hand, with a switch for every mistake.
#pragma once

#include <map>

#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/equivalence/port.h"

namespace isonorm::test {

constexpr double kPortRate = 1e-2, kPortDecay = 0.1;

// Increases the rate of an optimizer over the first five steps.
struct Warming : optim::Optimizer {
  std::unique_ptr<optim::Optimizer> inner;
  int64_t steps = 0;
  explicit Warming(std::unique_ptr<optim::Optimizer> o) : Optimizer("warming", 1), inner(std::move(o)) {}
  void step(double scale) override {
    inner->set_lr(kPortRate * std::min(1.0, static_cast<double>(++steps) / 5));
    inner->step(scale);
  }
};

struct PortedAdamW : optim::Optimizer {
  std::string_view bug;
  std::vector<Tensor> p, m, v, most;
  int64_t t = 0;

  PortedAdamW(const std::vector<Tensor>& parameters, std::string_view planted)
      : Optimizer("ported", parameters.size()), bug(planted), p(parameters) {
    add_group(parameters, kPortRate);
    for (const Tensor& w : p) m.push_back(zeros_like(w)), v.push_back(zeros_like(w)), most.push_back(zeros_like(w));
  }
  bool is(std::string_view name) const { return bug == name; }

  double rate() const {
    const double late = is("schedule late") ? 1 : 0;
    const double warm = kPortRate * std::min(1.0, (static_cast<double>(t) - late) / 5);
    if (is("schedule drops") && t >= 4) return warm / 10;
    return is("rate twice") ? 2 * warm : is("no warming") ? kPortRate : warm;
  }

  void step(double) override {
    const NoGrad no_grad;
    ++t;
    const double lr = rate(), b1 = is("beta1") ? 0 : 0.9, b2 = is("beta2") ? 0.99 : 0.999;
    const double eps = is("eps") ? 1e-6 : 1e-8, decay = is("no decay") ? 0 : kPortDecay;
    const auto n = static_cast<double>(t + (is("correction ahead") ? 1 : 0));
    const double c1 = is("no correction") ? 1 : 1 - std::pow(b1, n), c2 = is("no correction") ? 1 : 1 - std::pow(b2, n);
    for (size_t i = 0; i < p.size(); ++i) {
      if (!p[i].grad().defined() || (is("table left out") && i == 0)) continue;
      Tensor g = p[i].grad(), w = detach(p[i]);
      if (is("clipped")) g = clamp(g, -1e-3, 1e-3);
      if (is("coupled")) g = g + w * decay;
      const bool decays = !is("coupled") && !is("decay after") && !(is("vectors not decayed") && w.rank() == 1);
      if (decays) w = w * (1 - (is("decay without rate") ? 0.01 : lr) * decay);
      m[i] = m[i] * b1 + g * (1 - b1), v[i] = v[i] * b2 + square(g) * (1 - b2);
      most[i] = maximum(most[i], v[i]);
      if (is("moments reset") && t == 4) m[i] = g * (1 - b1);
      const Tensor second = (is("amsgrad") ? most[i] : v[i]) / c2;
      const Tensor size = is("eps inside") ? sqrt(second + eps) : sqrt(second) + eps;
      w = w - m[i] / c1 / size * lr;
      if (is("decay after")) w = w * (1 - lr * decay);
      copy_into(p[i], w);
    }
  }
};

}  // namespace isonorm::test
