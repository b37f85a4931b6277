// States prepared for a comparison: widened to f64, without means left by rounding, or moved as rounding moves them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/tensor_map.h"
#include "io/lazy_state.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

// Every floating tensor in f64, with each element moved by one unit in the last place of `dtype`, up or down at random:
// w (1 +- eps). Rounding explains at least that.
TensorMap moved_by_rounding(const TensorMap& state, DType dtype, uint64_t seed);
// The same for some tensors of a state. Each moves by its own format, or by its partner's format if that is coarser. A
// single coarse tensor does not move the others.
TensorMap moved_by_rounding(const TensorMap& some, const LazyState& state, const LazyState& partner,
                            Generator& generator);

// The state in f64; tensors that are not floating are unchanged.
TensorMap widened(const TensorMap& state);

// The same with the writers of rms_norm centred. The file rounded them after centring, and the means that this left are
// no part of the model. A conversion is compared with this in f64.
TensorMap centred(const TensorMap& state, const streams::Plan& plan);

}  // namespace isonorm::equivalence
