// Lab 4: RMSNorm, as an op of your own. 5 hours.
//
// Goal: add an op with a derivative to the library from outside, and see LayerNorm as RMSNorm of P x.
// Read: docs/normalization.md, "The norms" and "What a norm does not see"; docs/adding_an_op.md, "An op
//       outside of the tree"; track() in autograd/node.h, save() in autograd/saved.h.
// Do:   4_rms_norm.cpp. First guess which changes of a matrix W leave an RMSNorm of W z unchanged for every vector z;
//       then run `isonorm experiment invariance`.
// Hand in: 4_rms_norm.cpp.
#pragma once

#include "support/library.h"

namespace course {

using isonorm::Tensor;

// y = x / r, r = sqrt(mean x^2 + eps), for each row of x [..., n]. Recorded as one op, whose rule is
//   dx = (dy - y mean(dy y)) / r.
Tensor rms_norm_op(const Tensor& x, double eps = 1e-5);

// The same with r over the first k = max(1, ceil(p n)) entries only (pRMSNorm, 1910.07467), composed of differentiable
// functions.
Tensor partial_rms_norm(const Tensor& x, double p, double eps = 1e-5);

// LayerNorm without gain and bias, using rms_norm_op().
Tensor layer_norm_by_rms(const Tensor& x, double eps = 1e-5);

}  // namespace course
