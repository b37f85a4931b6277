// Adam with decoupled weight decay.
#pragma once

#include "optim/adam.h"

namespace isonorm::optim {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // decoupled: w is multiplied by 1 - lr weight_decay before the step
};

// w *= 1 - lr weight_decay; then as Adam with the bare gradient. Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization", ICLR 2019, with the decay scaled by lr as torch.optim.AdamW does. Parameters of f32, f64 or bf16.
// Throws on options out of range.
class AdamW : public AdamBase {
 public:
  explicit AdamW(const std::vector<Tensor>& parameters, AdamWOptions options = {});
  AdamW(const std::vector<Tensor>& parameters, std::floating_point auto lr)
      : AdamW(parameters, AdamWOptions{.lr = lr}) {}
  explicit AdamW(const std::vector<ParameterGroup<AdamWOptions>>& groups);
};

}  // namespace isonorm::optim
