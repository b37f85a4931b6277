// The model that options and data describe.
#pragma once

#include <memory>

#include "nn/module.h"
#include "nn/stream.h"
#include "training/training_options.h"

namespace isonorm::training {

// What the data decide about a model.
struct ModelShape {
  int64_t image = 28, channels = 1, classes = 10;  // vit
  int64_t vocab = 0;                               // gpt
};

// The model that `options` describe, on a stream of the given form and storage, with parameters of options.dtype.
std::unique_ptr<nn::Module> build_model(const TrainingOptions& options, const ModelShape& shape,
                                        const nn::Stream& stream);

}  // namespace isonorm::training
