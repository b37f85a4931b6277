// Adam, with coupled weight decay (L2), and AdamW, with decoupled weight decay.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
};

// g = gradient + weight_decay w;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
// w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps), t counting the parameter's own steps from 1.
// Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1; the semantics of
// torch.optim.Adam. Parameters of f32, f64 or bf16; state "exp_avg", "exp_avg_sq". Throws on options out of range.
class Adam : public ElementwiseGroups<Adam, AdamOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "adam";
  static Group group_of(const AdamOptions& options);
  static Step step_with(const AdamOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<Adam, AdamOptions>;

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // decoupled: w is multiplied by 1 - lr weight_decay before the step
};

// w *= 1 - lr weight_decay; then as Adam with the bare gradient. Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization", ICLR 2019, with the decay scaled by lr as torch.optim.AdamW does. Parameters of f32, f64 or bf16;
// state as Adam. Throws on options out of range.
class AdamW : public ElementwiseGroups<AdamW, AdamWOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "adamw";
  static Group group_of(const AdamWOptions& options);
  static Step step_with(const AdamWOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<AdamW, AdamWOptions>;

}  // namespace isonorm::optim
