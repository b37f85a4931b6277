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
class Adagrad : public ElementwiseGroups<Adagrad, AdagradOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "adagrad";
  static Group group_of(const AdagradOptions& options);
  static Step step_with(const AdagradOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<Adagrad, AdagradOptions>;

}  // namespace isonorm::optim
