// Dropout (Srivastava et al. 2014).
#pragma once

#include "nn/module.h"

namespace isonorm::nn {

// In training, zeroes each element with probability p and divides the others by 1 - p. Otherwise passes x on. After a
// layer that writes to a residual stream it breaks the zero mean that the centred forms rely on: use the writer's
// BranchOptions::dropout, or put it inside the branch (docs/normalization.md). Throws if p is not in [0, 1).
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Dropout rebuild() const { return Dropout(p_); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

}  // namespace isonorm::nn
