// The tensors of a checkpoint by name: are two equal to the last bit? Copies that are prepared for a comparison: widened
// to f64, with the gains of the function, without means that rounding left, or moved as rounding moves them.
#pragma once

#include <set>
#include <string>

#include "core/random.h"
#include "core/tensor_map.h"
#include "io/lazy_state.h"
#include "io/number_format.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

// True if dtype, shape and bits are equal. identical() compares all tensors, by name.
bool same_bytes(const Tensor& x, const Tensor& y);
bool identical(const TensorMap& a, const TensorMap& b);

// The coarsest format of the floating tensors of a state; f64 if it has none. half: the f16 tensors (LazyState).
NumberFormat coarsest(const TensorMap& state, const std::set<std::string>& half = {});

// A tensor of a state in f64, without its graph. Throws if it is missing.
Tensor widened(const TensorMap& state, const std::string& name);
// The state in f64; tensors that are not floating are unchanged.
TensorMap widened(const TensorMap& state);
// The same with the writers of rms_norm centred. The file rounded them after centring, and the means that this left are
// no part of the model. A conversion is compared with this in f64.
TensorMap centred(const TensorMap& state, const streams::Plan& plan);

// The state with the gains of the function: 1 + w in f64 if w is stored (Plan::Norm::plus_one).
LazyState with_gains(LazyState stored, const streams::Plan& plan);
TensorMap with_gains(const TensorMap& stored, const streams::Plan& plan);

// Some tensors of a state in f64, with each element moved by one unit in the last place, up or down at random:
// w (1 +- eps), with the eps of the tensor's own format, or of its partner's format if that is coarser. Rounding explains
// at least that.
TensorMap moved_by_rounding(const TensorMap& some, const LazyState& state, const LazyState& partner,
                            Generator& generator);

}  // namespace isonorm::equivalence
