// Initial weights of a training from a file.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "nn/module.h"
#include "training/spec/data_spec.h"

namespace isonorm::services {

// Reads the weights of the file at `path` for a model with raw parameters that a training begins with
// (TrainerOptions::init), in `dtype`. If a described file stores them in a form's coordinates, they are converted.
// load_state_dict() checks names and shapes later. Throws if the described model differs from `model`, and names the
// option.
//
// spec: the training's. With `more_tokens` the model may have more tokens than the file. If both have class names, rows
// of the head are matched by name. A token or class that the file lacks begins with the mean of the file's rows.
TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype, const training::DataSpec& spec,
                          bool more_tokens);

}  // namespace isonorm::services
