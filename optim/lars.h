// LARS: SGD with momentum; each tensor's rate is proportional to its norm.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct LarsOptions {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
  double trust = 1e-3;      // eta of the paper
  bool adapt = true;        // false: ratio 1, as is usual for biases and gains
};

// For each tensor: ratio = trust |w| / (|gradient| + weight_decay |w|), 1 where either is 0;  b = momentum b + lr ratio
// (gradient + weight_decay w) (b starts at 0);  w -= b. Norms are Euclidean, over the whole tensor. You, Gitman and
// Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1: the learning rate enters the momentum.
// Parameters of f32, f64 or bf16; state "momentum_buffer". Throws on options out of range.
class Lars : public ElementwiseOptimizer {
 public:
  explicit Lars(const std::vector<Tensor>& parameters, LarsOptions options = {});
  explicit Lars(const std::vector<ParameterGroup<LarsOptions>>& groups);
  bool by_entry() const override { return false; }  // norms are over a whole tensor

 private:
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override { return {&options_[group].weight_decay, &options_[group].momentum}; }
  void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) override;
  std::vector<LarsOptions> options_;
};

}  // namespace isonorm::optim
