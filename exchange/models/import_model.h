// Imports a published model: a folder of the Hugging Face hub becomes a model file of this library.
#pragma once

#include <optional>
#include <string>

#include "io/number_format.h"

namespace isonorm::exchange {

// A model that was written in another format.
struct WrittenModel {
  std::string sentence;  // "GPT-2, 148 tensors"
  std::string format;    // "isonorm", "folder", "onnx" or "gguf"
  std::string model;     // name of its row: "gpt"
  std::string family;    // type or class of the published family; empty for ONNX
  std::string form;      // of the residual stream of the weights that were written
  size_t tensors = 0;
  std::optional<int64_t> opset = {};  // ONNX only
};

// Writes the safetensors file `out`: the weights of `folder` and the description of their model, for load_model(),
// TrainerOptions::init, convert and verify. The folder's tokenizer, class names and preprocessor go with it. Warns if
// the tokenizer cannot be read, or if images have no preprocessor. format: of all tensors; none: each keeps its own.
//
//   exchange::import_model("gpt2/", "gpt2.safetensors");
//   const std::unique_ptr<nn::Module> gpt = training::load_model("gpt2.safetensors");
//
// Throws as hub::open_folder(), hub::port_options() and save_safetensors(); if the family is unknown; if a tensor is
// missing or unknown or has another shape; or if the preprocessor needs a step that is not supported.
WrittenModel import_model(const std::string& folder, const std::string& out, std::optional<NumberFormat> format = {});

}  // namespace isonorm::exchange
