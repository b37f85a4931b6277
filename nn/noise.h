// Noise on the input, against overfitting.
#pragma once

#include "nn/module.h"

namespace isonorm::nn {

// In training, adds normal noise with this standard deviation; otherwise passes x on. Throws if it is negative.
class GaussianNoise : public Module {
 public:
  explicit GaussianNoise(double deviation);
  GaussianNoise rebuild() const { return GaussianNoise(deviation_); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  double deviation_;
};

}  // namespace isonorm::nn
