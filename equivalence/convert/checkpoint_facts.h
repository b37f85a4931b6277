// Facts about one checkpoint, or about the bits of two, that are checked before entries are compared.
#pragma once

#include "core/tensor_map.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

// True if dtype, shape and bits are equal. identical() compares all tensors, by name.
bool same_bytes(const Tensor& x, const Tensor& y);
bool identical(const TensorMap& a, const TensorMap& b);

// True if the plan can belong to a conversion's result, which has no gain, layer scale or tied head.
bool folded(const streams::Plan& plan);

}  // namespace isonorm::equivalence
