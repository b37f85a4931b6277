// Checkpoints that know what they are: the options of a Gpt or Vit as text beside its weights, and models built from
// it.
#pragma once

#include <memory>
#include <string>

#include "io/safetensors.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "training/lazy_state.h"

namespace isonorm::training {

// Every option of the model as "model.<name>": "model.kind" "gpt", "model.width" "64", "model.stream" "rms_norm",
// "model.storage" "raw", ... To be saved with its weights:
//   save_safetensors("gpt.safetensors", model.state_dict(), training::describe(model));
// Throws where it is neither a Gpt nor a Vit.
Metadata describe(const nn::Module& model);

struct ModelFile {
  TensorMap state;
  Metadata description;  // as describe() gives it; empty where the file has none
  Metadata other = {};   // metadata beside it; of a checkpoint of `isonorm train` none
  // Dtypes of tensors that are held as bytes (io::TensorEntry).
  std::map<std::string, std::string> foreign = {};
};

// The same with tensors that are read when they are asked for.
struct OpenModelFile {
  LazyState state;
  Metadata description, other;
  std::map<std::string, std::string> foreign;
};

// A safetensors file or a checkpoint of `isonorm train` (its weights), whose checksum is verified first. Throws as
// SafetensorsFile and check_checkpoint, and where the file is one of several that hold a model.
OpenModelFile open_model_file(const std::string& path);
ModelFile load_model_file(const std::string& path);

// A described model.
class ModelOptions {
 public:
  // Throws, naming the entry, where one is missing, unknown or has no meaning.
  explicit ModelOptions(const Metadata& description);

  bool gpt() const { return gpt_; }
  const nn::TransformerOptions& transformer() const {
    return gpt_ ? gpt_options_.transformer : vit_options_.transformer;
  }
  nn::TransformerOptions& transformer() { return gpt_ ? gpt_options_.transformer : vit_options_.transformer; }
  nn::GptOptions& gpt_options() { return gpt_options_; }
  const nn::GptOptions& gpt_options() const { return gpt_options_; }
  const nn::VitOptions& vit_options() const { return vit_options_; }

  // Throws where a model of these sizes has far more parameters than `state`: before memory is taken for it.
  void check_size(const TensorMap& state) const;
  // The model, with parameters of dtype f64 and whatever values.
  std::unique_ptr<nn::Module> build() const;
  // The same options as text, sizes that follow from others written out.
  Metadata description() const;
  // Random inputs: images [rows, side, side, channels], or ids [rows, context] in which every id of the vocabulary
  // occurs; more rows where it takes them.
  Tensor inputs(int64_t rows, uint64_t seed) const;

 private:
  bool gpt_ = false;
  nn::GptOptions gpt_options_;
  nn::VitOptions vit_options_;
};

// Throws where the arrangement is not pre_norm, of which alone it is shown that the forms are one function.
void check_pre_norm(const nn::Arrangement& residual);

// The coordinates that a described model's parameters are in: raw ones are the Pre-LN model's, whatever its form.
nn::StreamForm stored_form(const ModelOptions& options);

}  // namespace isonorm::training
