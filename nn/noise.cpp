#include "nn/noise.h"

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"

namespace isonorm::nn {

GaussianNoise::GaussianNoise(double deviation) : deviation_(deviation) {
  check(deviation >= 0, "gaussian noise: a deviation of ", deviation);
}

Tensor GaussianNoise::forward(const Tensor& x) {
  if (!training() || deviation_ == 0) return x;
  return x + deviation_ * randn(x.shape(), x.options());
}

}  // namespace isonorm::nn
