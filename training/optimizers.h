// Optimizers by name, and what is done to gradients before them.
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

// Limits that `options` set on the gradients of `parameters`: adds L2 of the loss, clamps entries, and returns the
// factor that clips the global norm (1 without a limit), for Optimizer::step. What it changes it puts in new tensors.
double limit_gradients(const TrainingOptions& options, const std::vector<Tensor>& parameters);

}  // namespace isonorm::training
