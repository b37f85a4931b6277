// Adam with coupled weight decay (L2).
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
};

// The common part of Adam and AdamW: two moments per parameter, "exp_avg" and "exp_avg_sq", and one rule.
class AdamBase : public ElementwiseOptimizer {
 protected:
  AdamBase(const char* name, size_t parameters, bool decoupled)
      : ElementwiseOptimizer(name, parameters), decoupled_(decoupled) {}
  void add_group(const std::vector<Tensor>& parameters, const AdamOptions& options);
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override { return {&options_[group].weight_decay}; }

 private:
  bool decoupled_;
  std::vector<AdamOptions> options_;
};

// g = gradient + weight_decay w;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
// w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps), t counting the parameter's own steps from 1.
// Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1; the semantics of
// torch.optim.Adam. Parameters of f32, f64 or bf16. Throws on options out of range.
class Adam : public AdamBase {
 public:
  explicit Adam(const std::vector<Tensor>& parameters, AdamOptions options = {});
  explicit Adam(const std::vector<ParameterGroup<AdamOptions>>& groups);
};

}  // namespace isonorm::optim
