// RMSprop: gradients divided by the root of their running mean square.
#pragma once

#include "optim/elementwise.h"

namespace isonorm::optim {

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  // share of the running means that a step keeps
  double eps = 1e-8;
  double weight_decay = 0;  // coupled (L2): added to the gradient as weight_decay w
  double momentum = 0;
  bool centered = false;  // divides by the running standard deviation
};

// g = gradient + weight_decay w;  v = alpha v + (1 - alpha) g^2;  d = g / (sqrt(v) + eps), centered: a = alpha a + (1 -
// alpha) g, d = g / (sqrt(v - a^2) + eps);  w -= lr d, with momentum b = momentum b + d, w -= lr b; all start at 0.
// Tieleman and Hinton, "Neural Networks for Machine Learning", lecture 6.5, 2012; centered is Graves, "Generating
// Sequences with Recurrent Neural Networks", 2013, with the semantics of torch.optim.RMSprop (eps outside the root). If
// rounding makes v - a^2 negative it counts as 0; PyTorch gives NaN. Parameters of f32, f64 or bf16; state
// "square_avg", "grad_avg", "momentum_buffer". Throws on options out of range.
class Rmsprop : public ElementwiseGroups<Rmsprop, RmspropOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "rmsprop";
  static Group group_of(const RmspropOptions& options);
  static Step step_with(const RmspropOptions& options, double lr, int64_t t);
};
extern template class ElementwiseGroups<Rmsprop, RmspropOptions>;

}  // namespace isonorm::optim
