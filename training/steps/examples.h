// What a training step sees.
#pragma once

#include "autograd/ops/copy.h"

namespace isonorm::training {

// Inputs and targets of one step: images or ids, and i64 labels.
struct Examples {
  Tensor inputs, targets;

  Examples on(Device device) const { return {to(inputs, device), to(targets, device)}; }
};

}  // namespace isonorm::training
