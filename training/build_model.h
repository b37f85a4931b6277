// The model that options and data describe.
#pragma once

#include <memory>

#include "nn/module.h"
#include "streams/stream.h"
#include "training/model_row.h"

namespace isonorm::training {

// The model that `options` describe, on that stream, with parameters of options.dtype
// on options.device: made on the CPU, so that they are the same on every device.
std::unique_ptr<nn::Module> build_model(const TrainingOptions& options, const ModelShape& shape,
                                        const streams::Stream& stream);

}  // namespace isonorm::training
