// Activation checkpointing: memory for time (Chen et al., "Training deep nets with sublinear memory cost", 1604.06174).
#pragma once

#include <functional>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// f(inputs), of which nothing is kept for the backward but the inputs: when a gradient arrives, f runs once more, is
// recorded, and the backward passes it, on to the inputs and to whatever leaves f uses. f sees the default generator as
// it was, so that it draws the same numbers; it must compute the same from the same inputs, and change nothing else
// (running statistics would change twice). Undefined inputs stay so. Outputs are of floating dtypes. While gradients
// are off it is f(inputs). Throws where the second run gives another number of outputs or another shape, and where an
// input was changed in place before it.
std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                               const std::vector<Tensor>& inputs);
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

}  // namespace isonorm
