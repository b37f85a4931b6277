// A norm that may be wrong, for tests that have to find out. All tensors are f64. A right norm accepts x of any rank
// and any strides, with n >= 1 and at least one row, and any eps > 0. It does not change its arguments. Its result
// depends only on the arguments, not on earlier calls.
#pragma once

#include <functional>

#include "support/library.h"

namespace course {

using isonorm::Tensor;

struct NormWeights {
  Tensor gain, bias;  // [n]
  double eps = 1e-5;
};

struct NormGradients {
  Tensor x, gain, bias;  // of <dy, forward(x, w)>
};

struct NormUnderTest {
  // y of x's shape [..., n].
  std::function<Tensor(const Tensor& x, const NormWeights& w)> forward;
  // The gradients; dy has x's shape.
  std::function<NormGradients(const Tensor& x, const NormWeights& w, const Tensor& dy)> backward;
};

}  // namespace course
