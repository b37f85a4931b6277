// Dropout (Srivastava et al. 2014).
#pragma once

#include "nn/module.h"

namespace isonorm::nn {

// In training, zeroes each element with probability p and divides the others by 1 - p. Otherwise passes x on. On the
// output of a residual branch use BranchOptions::dropout: output maps of the branch's weights then act after the mask
// (docs/normalization.md). Throws if p is not in [0, 1).
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
