// Lion: the sign of an interpolated momentum.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  // decoupled: w is multiplied by 1 - lr weight_decay before the step
};

// w *= 1 - lr weight_decay;  w -= lr sign(beta1 m + (1 - beta1) gradient);  m = beta2 m + (1 - beta2) gradient (m
// starts at 0). sign(0) = 0; NaN stays NaN. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023,
// algorithm 2. Parameters of f32, f64 or bf16; state "exp_avg". Throws on options out of range.
class Lion : public ElementwiseOptimizer {
 public:
  explicit Lion(const std::vector<Tensor>& parameters, LionOptions options = {});
  Lion(const std::vector<Tensor>& parameters, std::floating_point auto lr) : Lion(parameters, LionOptions{.lr = lr}) {}
  explicit Lion(const std::vector<ParameterGroup<LionOptions>>& groups);

 private:
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override { return {&options_[group].weight_decay}; }
  std::vector<LionOptions> options_;
};

}  // namespace isonorm::optim
