// Where a training begins: with weights alone, or after a checkpoint, perhaps with other rates and more steps.
#pragma once

#include <optional>

#include "core/tensor_map.h"
#include "io/checkpoint.h"
#include "nn/module.h"
#include "tools/training.h"

namespace isonorm::tools {

// Of a checkpoint: the least test loss so far (training::BestLoss), where --best or --patience asked.
inline constexpr const char* kTests = "tests";

// All options of a training, and its data.
training::Manifest manifest_of(const TrainOptions& options, const training::Source& source);

// What a checkpoint says of its training: the options without those that change nothing (names of files, threads), those
// of its model as training::describe() writes them; checksums of the data and of the weights of `init`.
Metadata identity(const TrainOptions& options, const training::Source& source);

// The options that a checkpoint records for a resumed training, which may change them: is_kept().
Metadata kept(const TrainOptions& options);

// The identity of a training that goes on after `step` steps from this checkpoint, read from `path`; `asked` is that of
// its options. Throws naming an option that differs; with --extend those of the update (training::kExtendable) may, and
// the entry "earlier" says what they were: "to step 300 with --lr 0.001 --steps 300". Weights that it began with need not
// be named.
Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainOptions& options,
                   Metadata asked);

// Reads the weights of --init for a model with raw parameters, in `dtype`. If a described file stores them in a form's
// coordinates, they are converted. load_state_dict() checks names and shapes later. Throws if the described model differs
// from `model`, and names the option.
//
// spec: the training's. With `more_tokens` the model may have more tokens than the file. If both have class names, rows of
// the head are matched by name. A token or class that the file lacks begins with the mean of the file's rows.
TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype, const training::DataSpec& spec,
                          bool more_tokens);

// "mean 0.286, standard deviation 0.353": the pixel scale of a spec that has one.
std::string scale_text(const training::DataSpec& spec, const training::ModelShape& shape);
// Lines about a model whose file lacks the bytes of its tokens, or the class names or pixel scale of its images; file: its DataSpec, source: the data that it reads.
std::vector<std::string> spec_notes(const training::DataSpec& file, const training::Source& source);

}  // namespace isonorm::tools
