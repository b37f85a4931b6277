// Sign descent: every weight moves by the learning rate, against the sign of the gradient or of its running mean.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct SignSgdOptions {
  double lr = 1e-4;
  double momentum = 0;      // above 0: Signum
  double weight_decay = 0;  // decoupled: w is multiplied by 1 - lr weight_decay before the step
};

// w *= 1 - lr weight_decay;  m = momentum m + (1 - momentum) gradient (m starts at 0);  w -= lr sign(m); without
// momentum w -= lr sign(gradient). sign(0) = 0; NaN stays NaN. Bernstein et al., "signSGD: Compressed Optimisation for
// Non-Convex Problems", ICML 2018, algorithm 1 (signSGD and Signum). Parameters of f32, f64 or bf16; state "exp_avg"
// with momentum. Throws on options out of range.
class SignSgd : public ElementwiseOptimizer {
 public:
  explicit SignSgd(const std::vector<Tensor>& parameters, SignSgdOptions options = {});
  explicit SignSgd(const std::vector<ParameterGroup<SignSgdOptions>>& groups);

 private:
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override { return {&options_[group].weight_decay, &options_[group].momentum}; }
  std::vector<SignSgdOptions> options_;
};

}  // namespace isonorm::optim
