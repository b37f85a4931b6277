// Exports a model file of this library for other programs: transformers, ONNX runtimes, llama.cpp.
#pragma once

#include <optional>
#include <string>

#include "exchange/models/import_model.h"
#include "io/number_format.h"

namespace isonorm::exchange {

// Each function reads `in`, a checkpoint of a training or a model file (training/model_file.h) with all tensors of its
// model. The result appears at `out` only when it is complete. Raw weights of any form of Pre-LN are written as weights
// of the Pre-LN model. Each warns if `in` is a checkpoint of a training with averaged weights.
// All throw as open_model_file(); if a tensor is missing, unknown or has another shape or dtype; and if the format has
// no such model.

struct FamilyOptions {
  // A folder of a published model of this kind, whose tokenizer and other files are used; empty: none. Of its
  // config.json the entries stay that are not options of the model.
  std::string like = {};
  std::string family = {};                  // type of the published family; empty: the first that has this model
  std::optional<NumberFormat> format = {};  // of the tensors; none: each keeps its own
};

// Makes the folder `out`, which transformers' from_pretrained() loads. shard: largest size of a weights file in bytes.
//   exchange::export_folder("gpt.ckpt", "gpt/", {.family = "gpt2"});
WrittenModel export_folder(const std::string& in, const std::string& out, const FamilyOptions& options = {},
                           int64_t shard = 5'000'000'000);

// Writes a GGUF file for llama.cpp. Of `like` only the tokenizer is used.
WrittenModel export_gguf(const std::string& in, const std::string& out, const FamilyOptions& options = {});

// Writes an ONNX file (exchange/onnx/model.h). dtype: f32 or f64; none: f64 if all tensors are f64, else f32.
WrittenModel export_onnx(const std::string& in, const std::string& out, std::optional<DType> dtype = {},
                         std::optional<int64_t> opset = {});

}  // namespace isonorm::exchange
