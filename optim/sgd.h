// Stochastic gradient descent with momentum.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
  bool nesterov = false;
  double dampening = 0;    // of the gradient that enters the momentum, after the first step
  bool decoupled = false;  // multiplies w by 1 - lr weight_decay instead
};

// g = gradient + weight_decay w (if decoupled: w *= 1 - lr weight_decay instead);  b = momentum b + (1 - dampening) g,
// at first b = g;  w -= lr b, with nesterov w -= lr (g + momentum b). The semantics of torch.optim.SGD; Nesterov's form
// is Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013; decoupled decay
// (SGDW) is Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, with the decay scaled by lr.
// Parameters of f32, f64 or bf16; state "momentum_buffer". Throws on options out of range.
class Sgd : public ElementwiseGroups<Sgd, SgdOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "sgd";
  static Group group_of(const SgdOptions& options);
  static Step step_with(const SgdOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<Sgd, SgdOptions>;

}  // namespace isonorm::optim
