// Stochastic gradient descent with momentum.
#pragma once

#include "core/kernels/optimizer.h"
#include "optim/optimizer.h"

namespace isonorm::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
  bool nesterov = false;
};

// g = gradient + weight_decay w;  b = momentum b + g (b starts at 0);  w -= lr b, with nesterov w -= lr (g + momentum
// b). The semantics of torch.optim.SGD with dampening 0; Nesterov's form is Sutskever et al., "On the importance of
// initialization and momentum in deep learning", ICML 2013. Parameters of f32, f64 or bf16; state "momentum_buffer".
// Throws on options out of range.
class Sgd : public Optimizer {
 public:
  explicit Sgd(const std::vector<Tensor>& parameters, SgdOptions options = {});
  explicit Sgd(const std::vector<ParameterGroup<SgdOptions>>& groups);
  void step(double gradient_scale = 1) override;

 private:
  std::vector<SgdOptions> options_;
  std::vector<kernels::SgdUpdate> updates_;
};

}  // namespace isonorm::optim
