// What a training step sees.
#pragma once

#include "autograd/ops/copy.h"

namespace isonorm::training {

// Inputs and targets of one step: images or ids, and i64 labels.
struct Examples {
  Tensor inputs, targets;

  Examples on(Device device) const { return {to(inputs, device), to(targets, device)}; }
};

// Of a batch of the readers in data/, whose first member is the input and whose second the target.
template <class Batch> Examples examples_of(const Batch& batch) {
  const auto& [inputs, targets] = batch;
  return {inputs, targets};
}

}  // namespace isonorm::training
