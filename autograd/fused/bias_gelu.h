// GELU after a bias in one pass, so that a linear layer in front of it need not write its bias.
#pragma once

#include "core/tensor.h"

namespace isonorm {

enum class GeluForm { erf, tanh };  // exact, or its approximation by tanh

// gelu(x + bias): x [..., width], bias [width] of one floating dtype. Saves x alone. Throws where shapes or dtypes do
// not fit. Hendrycks & Gimpel, 1606.08415.
Tensor bias_gelu(const Tensor& x, const Tensor& bias, GeluForm form = GeluForm::erf);

namespace reference {
Tensor bias_gelu(const Tensor& x, const Tensor& bias, GeluForm form = GeluForm::erf);
}

}  // namespace isonorm
