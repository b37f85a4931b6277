#include "nn/dropout.h"

#include "autograd/ops/random.h"

namespace isonorm::nn {

Dropout::Dropout(double p) : p_(p) { check(p >= 0 && p < 1, "dropout: probability ", p, " is not in [0, 1)"); }

Tensor Dropout::forward(const Tensor& x) { return dropout(x, p_, training()); }

}  // namespace isonorm::nn
