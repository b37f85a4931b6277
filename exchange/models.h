// Models of other programs as files: a folder of the Hugging Face hub becomes a model file of this library; a model file
// becomes such a folder, an ONNX file or a GGUF file.
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

// Each function reads `in`, a checkpoint of a training or a model file (training/model_file.h) with all tensors of its
// model. The result appears at `out` only when it is complete. Raw weights of any form of Pre-LN are written as weights
// of the Pre-LN model. Each warns if `in` is a checkpoint of a training with averaged weights.
// All throw as open_model_file(); if a tensor is missing, unknown or has another shape or dtype; and if the format has
// no such model.

struct FamilyOptions {
  // A folder of a published model of this kind, whose tokenizer and other files are used, and the entries of its
  // config.json that are not options of the model; empty: none.
  std::string like = {};
  std::string family = {};                  // type of the published family; empty: the first that has this model
  std::optional<NumberFormat> format = {};  // of the tensors; none: each keeps its own
};

// Makes the folder `out`, which transformers' from_pretrained() loads. shard: largest size of a weights file in bytes.
//   exchange::export_folder("gpt.ckpt", "gpt/", {.family = "gpt2"});
WrittenModel export_folder(const std::string& in, const std::string& out, const FamilyOptions& options = {},
                           int64_t shard = 5'000'000'000);

// Writes a GGUF file for llama.cpp. A folder `like` gives only its tokenizer.
WrittenModel export_gguf(const std::string& in, const std::string& out, const FamilyOptions& options = {});

// Writes an ONNX file (exchange/onnx/model.h). dtype: f32 or f64; none: f64 if all tensors are f64, else f32.
WrittenModel export_onnx(const std::string& in, const std::string& out, std::optional<DType> dtype = {},
                         std::optional<int64_t> opset = {});

}  // namespace isonorm::exchange
