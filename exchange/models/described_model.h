// Internal: a model of this library as a file or folder describes it, and the tensors that it must have.
#pragma once

#include "core/tensor_map.h"
#include "exchange/hub/port.h"
#include "training/model_options.h"

namespace isonorm::exchange {

// The model of a folder with this config.json. Throws, naming the key, if our model cannot have the value.
training::ModelOptions options_of(const hub::Port& port, const hub::Config& config);

// Names and shapes of the model's tensors. All blocks of a stack are equal, so only a model with one block is made.
TensorMap outline_of(const training::ModelOptions& options);

// Throws, naming the tensor, if one of the model is missing or has another shape, or if one is not the model's.
void check_tensors(const training::ModelOptions& options, const TensorMap& outline);

}  // namespace isonorm::exchange
