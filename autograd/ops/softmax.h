// Softmax and its logarithm along one dimension of a floating tensor (bf16 is computed in f32).
#pragma once

#include "core/tensor.h"

namespace isonorm {

// e^x / sum e^x along `dim`, shifted by the maximum so that it does not overflow. A row that is all -inf gives NaN, as
// in PyTorch; in other rows entries of -inf give exactly 0. Throws for rank 0, a wrong dimension or an integer dtype.
Tensor softmax(const Tensor& x, int dim = -1);

// x - ln sum e^x along `dim`, without forming e^x / sum e^x. Throws like softmax().
Tensor log_softmax(const Tensor& x, int dim = -1);

}  // namespace isonorm
