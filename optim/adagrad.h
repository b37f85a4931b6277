// Adagrad: gradients divided by the root of the sum of their squares so far.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
  double initial = 0;       // initial value of the sum of squares
  double eps = 1e-10;
};

// g = gradient + weight_decay w;  s += g^2;  w -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps), t counting the
// parameter's own steps from 1. Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and
// Stochastic Optimization", JMLR 2011; the semantics of torch.optim.Adagrad. Parameters of f32, f64 or bf16; state
// "sum". Throws on options out of range.
class Adagrad : public ElementwiseOptimizer {
 public:
  explicit Adagrad(const std::vector<Tensor>& parameters, AdagradOptions options = {});
  explicit Adagrad(const std::vector<ParameterGroup<AdagradOptions>>& groups);

 private:
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override { return {&options_[group].weight_decay}; }
  std::vector<AdagradOptions> options_;
};

}  // namespace isonorm::optim
