// Layers without parameters, for nn::Sequential. In your own forward() the functions are shorter.
#pragma once

#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "nn/module.h"

namespace isonorm::nn {

// Returns its input, of any shape and dtype.
class Identity : public Module {
 protected:
  Tensor forward(const Tensor& x) override { return x; }
};

// flatten(): joins the dimensions first, ..., last into one, by default all but the batch dimension: [n, ...] -> [n,
// rest]. Throws if the input has no such dimensions.
class Flatten : public Module {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}
  Flatten rebuild() const { return Flatten(first_, last_); }

 protected:
  Tensor forward(const Tensor& x) override { return flatten(x, first_, last_); }

 private:
  int first_, last_;
};

// Activations.
template <Tensor (*F)(const Tensor&)> class Pointwise : public Module {
 protected:
  Tensor forward(const Tensor& x) override { return F(x); }
};

using Relu = Pointwise<&isonorm::relu>;
using Gelu = Pointwise<&isonorm::gelu>;
using GeluTanh = Pointwise<&isonorm::gelu_tanh>;
using Silu = Pointwise<&isonorm::silu>;
using Tanh = Pointwise<&isonorm::tanh>;
using Sigmoid = Pointwise<&isonorm::sigmoid>;

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

// In training, zeroes each element with probability p and divides the others by 1 - p (Srivastava et al. 2014).
// Otherwise passes x on. For the output of a residual branch use BranchOptions::dropout: output maps of the branch's
// weights then act after the mask (docs/normalization.md). Throws if p is not in [0, 1).
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Dropout rebuild() const { return Dropout(p_); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

// In training, adds normal noise with this standard deviation, against overfitting; otherwise passes x on. Throws if it
// is negative.
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
