// States before they are compared: in f64, without what rounding left of means, and moved as rounding moves them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/tensor_map.h"
#include "io/lazy_state.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

// Every floating tensor in f64 with each element moved by one unit in the last place of `dtype`, up or down at random:
// w (1 +- eps). What rounding explains, at least.
TensorMap moved_by_rounding(const TensorMap& state, DType dtype, uint64_t seed);
// The same of some tensors of a state, with the format that each has, or its partner of that name where that is coarser: one
// coarse tensor is no reason to move the others as far.
TensorMap moved_by_rounding(const TensorMap& some, const LazyState& state, const LazyState& partner,
                            Generator& generator);

// The state in f64; tensors that are not floating as they are.
TensorMap widened(const TensorMap& state);

// The same with the writers of rms_norm centred: a file rounded them after that, and the means that this left are no
// part of the model. What a conversion is compared with in f64.
TensorMap centred(const TensorMap& state, const streams::Placement& layout);

}  // namespace isonorm::equivalence
