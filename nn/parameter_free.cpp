#include "nn/parameter_free.h"

#include "autograd/ops/random.h"

namespace isonorm::nn {

Dropout::Dropout(double p) : p_(p) { check(p >= 0 && p < 1, "dropout: probability ", p, " is not in [0, 1)"); }

Tensor Dropout::forward(const Tensor& x) { return dropout(x, p_, training()); }

GaussianNoise::GaussianNoise(double deviation) : deviation_(deviation) {
  check(deviation >= 0, "gaussian noise: a deviation of ", deviation);
}

Tensor GaussianNoise::forward(const Tensor& x) {
  if (!training() || deviation_ == 0) return x;
  return x + deviation_ * randn(x.shape(), x.options());
}

}  // namespace isonorm::nn
