// Softmax and its logarithm along one dimension of a floating tensor (bf16 is computed in f32).
#pragma once

#include "core/tensor.h"

namespace isonorm {

// e^x / sum e^x along `dim`, shifted by the maximum so that it does not overflow. A row of -inf only is NaN, as in
// PyTorch; entries of -inf beside finite ones are exactly 0. Throws for rank 0, a wrong dimension or an integer dtype.
Tensor softmax(const Tensor& x, int dim = -1);

// x - ln sum e^x along `dim`, without forming e^x / sum e^x. Throws as softmax.
Tensor log_softmax(const Tensor& x, int dim = -1);

}  // namespace isonorm
