// Activation checkpointing: memory for time (Chen et al., "Training deep nets with sublinear memory cost", 1604.06174).
#pragma once

#include <functional>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// Returns f(inputs) and saves only the inputs for the backward. When a gradient arrives, f runs again and is recorded
// this time; the backward continues through it to the inputs and to the leaves that f uses.
//
// Both runs start with the default generator in the same state, so they draw the same random numbers. f must compute
// the same outputs from the same inputs and must have no side effects (running statistics would be updated twice).
// Undefined inputs are passed on undefined. Outputs must be floating. Under NoGrad this is just f(inputs). Throws if
// the second run gives another number of outputs, another shape or another dtype, or if an input was changed in place
// before it.
std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                               const std::vector<Tensor>& inputs);
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

}  // namespace isonorm
