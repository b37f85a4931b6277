// Optimizers by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/module.h"
#include "optim/optimizer.h"
#include "training/training_options.h"

namespace isonorm::training {

// The optimizer that `options` name, with their rate and decay, over the tensors of `parameters`.
std::unique_ptr<optim::Optimizer> build_optimizer(const TrainingOptions& options,
                                                  const std::vector<nn::Parameter>& parameters);

// What of the optimizer is not as a reader would assume, in a sentence; empty where there is nothing: the floor eps1 of
// Adafactor in f64.
std::string optimizer_note(OptimizerKind optimizer, DType dtype);

}  // namespace isonorm::training
