// LARS and LAMB: steps of SGD and Adam, scaled for each tensor in proportion to its norm.
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

// Per tensor: ratio = trust |w| / (|gradient| + weight_decay |w|), 1 where either is 0;  b = momentum b + lr ratio
// (gradient + weight_decay w) (b starts at 0);  w -= b. Norms are Euclidean, over the whole tensor. You, Gitman and
// Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1: the learning rate enters the momentum.
// Parameters of f32, f64 or bf16; state "momentum_buffer". Throws on options out of range.
class Lars : public ElementwiseGroups<Lars, LarsOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "lars";
  static Group group_of(const LarsOptions& options);
  static Step step_with(const LarsOptions& options, double lr, int64_t t);
  bool by_entry() const override { return false; }  // norms are over a whole tensor

 private:
  void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) override;
};
extern template class ElementwiseGroups<Lars, LarsOptions>;

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
class Lamb : public ElementwiseGroups<Lamb, LambOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "lamb";
  static Group group_of(const LambOptions& options);
  static Step step_with(const LambOptions& options, double lr, int64_t t);
  bool replays() const override { return false; }   // the direction needs an update of its own
  bool by_entry() const override { return false; }  // norms are over a whole tensor

 private:
  void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) override;
};
extern template class ElementwiseGroups<Lamb, LambOptions>;

}  // namespace isonorm::optim
