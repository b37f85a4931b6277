// Gradient accumulation: one optimizer step for several backward passes, by the mean of their gradients.
#pragma once

#include "optim/optimizer.h"

namespace isonorm::optim {

// backward() adds to the gradients until zero_grad(), so that after n passes they hold n times the mean; the step reads
// them divided by n, and a limit on their norm sees that mean. Equal to one pass over all examples where the loss is a
// mean over targets of which all batches have as many (cross_entropy() does not count what it ignores).
//
//   optim::Accumulator accumulator(opt, 4, 1.0);
//   for (...) {
//     backward(loss_of(batch));
//     if (accumulator.step()) ...  // every fourth time: the weights have changed and the gradients are cleared
//   }
class Accumulator {
 public:
  // max_norm: limit on the norm of the mean gradient, 0 for none. Keeps a reference to the optimizer. Throws where
  // passes is below 1 or max_norm is negative.
  Accumulator(Optimizer& optimizer, int64_t passes, double max_norm = 0);

  // To be called after each backward(); whether it stepped.
  bool step();

 private:
  Optimizer& optimizer_;
  int64_t passes_, done_ = 0;
  double max_norm_;
};

}  // namespace isonorm::optim
