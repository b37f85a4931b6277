// Layers without parameters that keep all values, for nn::Sequential.
#pragma once

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

}  // namespace isonorm::nn
