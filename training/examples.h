// What a training step sees.
#pragma once

#include "core/tensor.h"

namespace isonorm::training {

// Inputs and targets of one step: images or ids, and i64 labels.
struct Examples {
  Tensor inputs, targets;
};

}  // namespace isonorm::training
