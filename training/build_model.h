// The model that options describe.
#pragma once

#include <memory>

#include "training/training_options.h"

namespace isonorm::training {

// The model that `options` describe, on that stream, with parameters of options.dtype
// on options.device: made on the CPU, so that they are the same on every device.
std::unique_ptr<nn::Module> build_model(const TrainingOptions& options, const streams::StreamOptions& stream);

}  // namespace isonorm::training
