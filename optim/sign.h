// Optimizers whose steps are signs, so that every weight moves by the learning rate: SignSGD, Signum and Lion.
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
class SignSgd : public ElementwiseGroups<SignSgd, SignSgdOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "sign_sgd";
  static Group group_of(const SignSgdOptions& options);
  static Step step_with(const SignSgdOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<SignSgd, SignSgdOptions>;

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  // decoupled: w is multiplied by 1 - lr weight_decay before the step
};

// w *= 1 - lr weight_decay;  w -= lr sign(beta1 m + (1 - beta1) gradient);  m = beta2 m + (1 - beta2) gradient (m
// starts at 0). sign(0) = 0; NaN stays NaN. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023,
// algorithm 2. Parameters of f32, f64 or bf16; state "exp_avg". Throws on options out of range.
class Lion : public ElementwiseGroups<Lion, LionOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "lion";
  static Group group_of(const LionOptions& options);
  static Step step_with(const LionOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<Lion, LionOptions>;

}  // namespace isonorm::optim
