// What must hold before a checkpoint can be converted exactly, checked tensor by tensor.
#pragma once

#include "core/tensor_map.h"
#include "equivalence/layout.h"

namespace isonorm::equivalence {

// Throws, naming tensor and reason, where the state does not fit the layout or the layout cannot be converted; see
// convert().
void check_convertible(const TensorMap& state, const Layout& layout);

// Throws where a writer [.., d, ..] of a model with RMSNorm is not zero-mean along `dim`, as far as rounding to `dtype`
// allows: |mean| <= eps(dtype) max |w|.
void check_zero_mean(const std::string& name, const Tensor& writer, int dim, DType dtype);

}  // namespace isonorm::equivalence
