// Internal: a model of ours as an ONNX file, which runtimes run: its inference, for any batch and number of ids.
#pragma once

#include "io/lazy_state.h"
#include "training/model_options.h"

namespace isonorm::onnx {

inline constexpr int64_t kOpsets[] = {17, 23};

// Replaces the file. dtype: f32 or f64, of all that is computed. A GPT takes "ids", i64 [batch, time] with at most `context`
// ids a row, a ViT "images" [batch, image, image, channels]; both give "logits". Of opset 17 an RMSNorm is the operators of its
// formula, which onnxruntime fuses to one; of opset 23, in f32, it is RMSNormalization. A norm in f64 is always the operators of its
// formula: the attribute epsilon is of f32. Throws where there is no graph for the model: connections that are not pre_ln, other
// models than these two.
void save_model(const std::string& path, const LazyState& state, const training::ModelOptions& options, DType dtype,
                int64_t opset);

// The file beside it that save_model() writes if a model has more than 2 GB: `path`.data.
std::string data_file(const std::string& path);

}  // namespace isonorm::onnx
