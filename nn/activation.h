// Activations as modules, for nn::Sequential. In your own forward() the functions are shorter.
#pragma once

#include "autograd/ops/pointwise.h"
#include "nn/module.h"

namespace isonorm::nn {

template <Tensor (*F)(const Tensor&)> class Pointwise : public Module {
 protected:
  Tensor forward(const Tensor& x) override { return F(x); }
};

// leaky_relu() with its slope.
class LeakyRelu : public Module {
 public:
  explicit LeakyRelu(double slope = 0.01) : slope_(slope) {}
  LeakyRelu rebuild() const { return LeakyRelu(slope_); }

 protected:
  Tensor forward(const Tensor& x) override { return leaky_relu(x, slope_); }

 private:
  double slope_;
};

using Relu = Pointwise<&isonorm::relu>;
using Gelu = Pointwise<&isonorm::gelu>;
using GeluTanh = Pointwise<&isonorm::gelu_tanh>;
using Silu = Pointwise<&isonorm::silu>;
using Tanh = Pointwise<&isonorm::tanh>;
using Sigmoid = Pointwise<&isonorm::sigmoid>;

}  // namespace isonorm::nn
