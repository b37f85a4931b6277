// Internal: exports a model as an ONNX file for inference, for any batch size and sequence length.
#pragma once

#include "io/lazy_state.h"
#include "training/model_options.h"

namespace isonorm::onnx {

inline constexpr int64_t kOpsets[] = {17, 23};

// Replaces the file. dtype: f32 or f64, for the whole computation. A GPT takes "ids", i64 [batch, time] with at most
// `context` ids a row; a ViT takes "images" [batch, image, image, channels]. Both return "logits".
// In opset 17 an RMSNorm becomes the operators of its formula, which onnxruntime fuses into one. In opset 23, in f32,
// it becomes RMSNormalization. A norm in f64 always becomes the operators of its formula, because the attribute epsilon
// is f32.
// Throws if the model is neither a GPT nor a ViT, or if its connections are not pre_ln.
// The file's metadata_props are options.description() and `metadata`.
void save_model(const std::string& path, const LazyState& state, const training::ModelOptions& options,
                const Metadata& metadata, DType dtype, int64_t opset);

// The name of the second file, for the weights, that save_model() writes if a model has more than 2 GB: `path`.data.
std::string data_file(const std::string& path);

}  // namespace isonorm::onnx
