// Checkpoints that know what they are: the options of a model as text beside its weights.
#pragma once

#include <string>

#include "io/half.h"
#include "training/spec/data_spec.h"
#include "training/model_options.h"

namespace isonorm::training {

struct ModelFile {
  TensorMap state;
  Metadata description;  // as describe() gives it; empty where the file has none
  Metadata other = {};   // other metadata; of a checkpoint of `isonorm train` only the entries of its DataSpec
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

// What such a file says of its model, as describe() gives it, without a look at its tensors; empty where it has no kModelKind: entries
// that begin as the others do are another program's.
Metadata model_description(const SafetensorsFile& file);

// Saves a module's parameters and buffers as a safetensors file and, where a row of `models` is of its type, describe() of it:
// verify, convert and train --init then know what it is. Throws as save_safetensors and describe.
void save_model(const std::string& path, const nn::Module& model, ModelList models = kModels,
                const DataSpec& spec = {});
// Loads the model, with its weights, from such a file or a checkpoint of `isonorm train`, in evaluation mode and in the
// file's dtype. Draws no initial values (nn::SkipInit); the default generator keeps its state. Throws if the file does
// not say what model it holds, or its tensors are not that model's. A module of the user's own class is constructed by
// its program: net.load_state_dict(load_model_file(path).state).
std::unique_ptr<nn::Module> load_model(const std::string& path, ModelList models = kModels);

}  // namespace isonorm::training
