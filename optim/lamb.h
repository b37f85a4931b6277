// LAMB: Adam's step, scaled for each tensor in proportion to the tensor's norm.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct LambOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 1e-2;  // added to the step before its norm is taken
  bool adapt = true;           // false: ratio 1 (AdamW), as is usual for biases and gains
};

// m = beta1 m + (1 - beta1) gradient;  v = beta2 v + (1 - beta2) gradient^2;  u = (m / (1 - beta1^t)) / (sqrt(v / (1 -
// beta2^t)) + eps) + weight_decay w, t counting the parameter's own steps from 1;  w -= lr ratio u, with ratio = |w| /
// |u|, 1 where either is 0. Norms are Euclidean, over the whole tensor. You et al., "Large Batch Optimization for Deep
// Learning: Training BERT in 76 minutes", ICLR 2020, algorithm 2, with phi the identity. Parameters of f32, f64 or
// bf16; state "exp_avg", "exp_avg_sq"; a step holds u for all parameters. Throws on options out of range.
class Lamb : public ElementwiseOptimizer {
 public:
  explicit Lamb(const std::vector<Tensor>& parameters, LambOptions options = {});
  explicit Lamb(const std::vector<ParameterGroup<LambOptions>>& groups);
  bool replays() const override { return false; }   // the direction needs an update of its own
  bool by_entry() const override { return false; }  // norms are over a whole tensor

 private:
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override { return {&options_[group].weight_decay}; }
  void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) override;
  std::vector<LambOptions> options_;
};

}  // namespace isonorm::optim
