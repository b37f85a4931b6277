// The feed-forward block of a Transformer as one op.
#pragma once

#include "core/tensor.h"

namespace isonorm {

enum class GeluForm { erf, tanh };  // exact, or its approximation by tanh (Hendrycks & Gimpel, 1606.08415)

// y = gelu(x W1^T + b1) W2^T + b2 (Vaswani et al., 1706.03762, section 3.3): x [..., in], w1 [hidden, in], b1 [hidden]
// or undefined, w2 [out, hidden], b2 [out] or undefined -> [..., out] of x's dtype. All have one floating dtype, or x
// is bf16 and the others are f32, as in linear(). A few rows at a time pass through both products, so the activation's
// output is never stored; the backward computes it again. Saves x and x W1^T + b1. Throws, naming both shapes, if they
// do not fit.
Tensor mlp(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
           GeluForm form = GeluForm::erf);

namespace reference {
Tensor mlp(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
           GeluForm form = GeluForm::erf);
}

}  // namespace isonorm
