// Initial weights of a training from a file.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "nn/module.h"
#include "training/spec/data_spec.h"

namespace isonorm::services {

// Reads the weights of the file at `path` as initial weights of a model with raw parameters (TrainerOptions::init), in
// `dtype`. If the file describes its model and stores the weights in another form's coordinates, they are converted
// back. load_state_dict() checks names and shapes later. Throws, naming the option, if the described model differs from
// `model`.
//
// spec: of the training. more_tokens: the model may have more tokens than the file. If both have class names, rows of
// the head are matched by name. Rows of tokens or classes that the file lacks start as the mean of the file's rows.
TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype, const training::DataSpec& spec,
                          bool more_tokens);

}  // namespace isonorm::services
