// Makes the model that options describe.
#pragma once

#include <memory>

#include "training/training_options.h"

namespace isonorm::training {

// Makes the model of `options` on the given stream, with parameters of options.dtype on options.device. Initial values
// are drawn on the CPU, so they are the same for every device.
std::unique_ptr<nn::Module> build_model(const TrainingOptions& options, const streams::StreamOptions& stream);

}  // namespace isonorm::training
