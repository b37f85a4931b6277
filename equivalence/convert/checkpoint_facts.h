// What is true of one checkpoint, or of the bits of two: asked before their entries are compared.
#pragma once

#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

// Whether dtype, shape and bits are equal: of one tensor, of all by name.
bool same_bytes(const Tensor& x, const Tensor& y);
bool identical(const TensorMap& a, const TensorMap& b);

// Whether it holds neither NaN nor infinity, as integers never do.
bool is_finite(const Tensor& x);
// The first tensor that holds NaN or infinity; nothing where all are finite.
std::string not_finite(const TensorMap& state);

// Whether the layout can be that of a conversion's result, which has no gain, scale or tied head.
bool folded(const streams::Placement& layout);

}  // namespace isonorm::equivalence
