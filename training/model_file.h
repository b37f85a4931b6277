// Checkpoints that know what they are: the options of a model as text beside its weights.
#pragma once

#include <string>

#include "data/alphabet.h"
#include "io/half.h"
#include "training/model_options.h"

namespace isonorm::training {

// Where a file has the characters that the ids of its model stand for, as data::Alphabet writes them.
inline constexpr const char* kCharacters = "characters";

struct ModelFile {
  TensorMap state;
  Metadata description;  // as describe() gives it; empty where the file has none
  Metadata other = {};   // metadata beside it; of a checkpoint of `isonorm train` its characters alone
  io::ForeignTypes foreign = {};
};

// The same with tensors that are read when they are asked for.
struct OpenModelFile {
  OpenModelFile() = default;
  OpenModelFile(const ModelFile& held)
      : state(held.state), description(held.description), other(held.other), foreign(held.foreign) {}

  LazyState state;
  Metadata description, other;
  io::ForeignTypes foreign;
  std::shared_ptr<const SafetensorsFile> file;  // that `state` reads
};

// A safetensors file or a checkpoint of `isonorm train` (its weights), whose checksum is verified first. Throws as
// SafetensorsFile and check_checkpoint, and where the file is one of several that hold a model.
OpenModelFile open_model_file(const std::string& path);
ModelFile load_model_file(const std::string& path);

// What such a file says of its model, as describe() gives it, without a look at its tensors; empty where it says nothing.
Metadata model_description(const SafetensorsFile& file);

// The characters of such a file; none where it has none. Throws where they are damaged.
data::Alphabet alphabet_of(const SafetensorsFile& file);

// Saves a module's parameters and buffers as a safetensors file and, where a row of `models` is of its type, describe() of it:
// verify, convert and train --init then know what it is. `alphabet`: what the ids of a model of characters stand for.
// Throws as save_safetensors and describe.
void save_model(const std::string& path, const nn::Module& model, ModelList models = kModels,
                const data::Alphabet& alphabet = {});
// The model of such a file or of a checkpoint of `isonorm train`, with its weights, in evaluation mode and in the dtype that
// the file has it in. Throws where the file does not say what model it holds, or its tensors are not that model's.
std::unique_ptr<nn::Module> load_model(const std::string& path, ModelList models = kModels);

}  // namespace isonorm::training
