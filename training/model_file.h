// Model files: weights together with the options of their model as text.
#pragma once

#include <string>

#include "io/half.h"
#include "training/spec/data_spec.h"
#include "training/model_options.h"

namespace isonorm::training {

struct ModelFile {
  TensorMap state;
  Metadata description;  // the result of describe(); empty if the file has none
  Metadata other = {};   // other metadata; for a checkpoint only the entries of its DataSpec
  io::ForeignTypes foreign = {};
};

// The same with tensors that are read only when they are needed.
struct OpenModelFile {
  OpenModelFile() = default;
  OpenModelFile(const ModelFile& held)
      : state(held.state), description(held.description), other(held.other), foreign(held.foreign) {}

  LazyState state;
  Metadata description, other;
  io::ForeignTypes foreign;
  std::shared_ptr<const SafetensorsFile> file;  // the file that `state` reads
};

// Reads a safetensors file, or the weights in a checkpoint of `isonorm train`, whose checksum is verified first. Throws
// as SafetensorsFile and check_checkpoint, and if the file is a shard of a model.
OpenModelFile open_model_file(const std::string& path);
ModelFile load_model_file(const std::string& path);

// The description in the file's metadata, as describe() wrote it; does not look at the tensors. Empty if there is no
// kModelKind: then entries with the prefix belong to another program.
Metadata model_description(const SafetensorsFile& file);

// Saves a module's parameters and buffers as a safetensors file. If a row of `models` has the module's type, the file
// gets describe() of it, which verify, convert and train --init read. Throws as save_safetensors and describe.
void save_model(const std::string& path, const nn::Module& model, ModelList models = kModels,
                const DataSpec& spec = {});
// Loads a model and its weights from such a file or a checkpoint of `isonorm train`, in evaluation mode and in the
// file's dtype. Draws no initial values (nn::SkipInit); the default generator keeps its state. Throws if the file does
// not describe its model, or its tensors do not fit that model. A module of the user's own class is constructed by its
// program: net.load_state_dict(load_model_file(path).state).
std::unique_ptr<nn::Module> load_model(const std::string& path, ModelList models = kModels);
// The same for a command that computes with the model. Also throws as check_finite().
std::unique_ptr<nn::Module> load_finite_model(const std::string& path);

// Throws Diverged, naming the file and the tensor, if a weight is NaN or infinite.
void check_finite(const std::string& path, const TensorMap& weights);

// Warns if the file is a checkpoint of a training with averaged weights (--ema): its test passes used the averages, but
// the file has the weights of its last step. Call it when nothing can fail any more: a failure is one line.
void warn_of_averages(const SafetensorsFile& file, const std::string& path);

}  // namespace isonorm::training
