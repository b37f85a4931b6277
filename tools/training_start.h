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

// What `isonorm train` has to be given for this training, but for where it writes: {"--model", "gpt"}, ...
training::OptionList given_of(const TrainOptions& options);

// All options of a training, and its data.
training::Manifest manifest_of(const TrainOptions& options, const training::Source& source);

// Whether an option makes a training another one: names of files, threads and devices do not.
bool is_of_identity(std::string_view name);

// What is of proofs alone is not: a training has the ranks that MPI has started.
inline bool is_of_train(std::string_view name) { return name != "resume_at" && name != "ranks"; }

// What a checkpoint says of its training, by name; nothing where the file is none.
Metadata checkpoint_values(const SafetensorsFile& file);
// Sets the options and the characters that these values have, but for the model's. Throws naming one that it cannot be.
void set_as_trained(TrainOptions& options, const Metadata& values);

// What a checkpoint says of its training: the options without those that change nothing (names of files, threads), those
// of its model as training::describe() writes them; checksums of the data and of the weights of `init`.
Metadata identity(const TrainOptions& options, const training::Source& source);

// The identity of a training that goes on after `step` steps from this checkpoint, read from `path`; `asked` is that of
// its options. Throws naming an option that differs; with --extend those of the update (training::kExtendable) may, and
// the entry "earlier" says what they were: "to step 300 with --lr 0.001 --steps 300". Weights that it began with need not
// be named.
Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainOptions& options,
                   Metadata asked);

// The weights in the file for a model whose parameters are raw, in `dtype`. Those of a described file are converted
// where it stores them in a form's coordinates; names and shapes are left to load_state_dict(). Throws naming the
// option in which the described model is another one than `model`. more_characters: the model may have more than the file.
TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype, bool more_characters);

}  // namespace isonorm::tools
