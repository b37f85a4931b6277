// ModelOptions: what a model is, whichever it is. As a file describes it, as a module has it, or as the options of a
// training name it.
#pragma once

#include <any>
#include <memory>
#include <optional>

#include "core/tensor_map.h"
#include "io/safetensors.h"
#include "nn/module.h"
#include "training/model_row.h"

namespace isonorm::training {

inline constexpr std::string_view kOptionPrefix = "model.";

class ModelOptions {
 public:
  // As describe() wrote them. Throws, naming the entry, where one is missing, unknown or has no meaning.
  explicit ModelOptions(const Metadata& description, ModelList models = kModels);
  // The model of a training, on data of this shape, on that stream.
  ModelOptions(const TrainingOptions& o, const ModelShape& shape, const streams::Stream& stream);
  // Those of a published size of a model (ModelRow::preset). Throws where there is none of that name.
  static ModelOptions preset(const ModelRow& row, std::string_view name);
  // Those of a module, its stream the one that it was put on, or else that of its norms; none where no row is of its type.
  static std::optional<ModelOptions> of(const nn::Module& module, ModelList models = kModels);

  const ModelRow& row() const { return *row_; }
  const nn::TransformerOptions& transformer() const { return const_cast<ModelOptions*>(this)->transformer(); }
  nn::TransformerOptions& transformer() { return row_->transformer ? row_->transformer(options_) : plain_; }
  const streams::StreamOptions& stream() const { return stream_; }
  streams::StreamOptions& stream() { return stream_; }
  void untie();

  // The reverse of the second constructor: sets in `o` and `shape` all that the model says of them.
  void give(TrainingOptions& o, ModelShape& shape) const;

  // Throws where a model of these sizes has far more parameters than `state`: before memory is taken for it.
  void check_size(const TensorMap& state) const;
  // The model, with initial parameters of dtype f32, in training mode.
  std::unique_ptr<nn::Module> make() const { return row_->make(options_, stream_); }
  // The model, with parameters of dtype f64 and whatever values, in evaluation mode: it computes in f64, whatever its
  // precision.
  std::unique_ptr<nn::Module> build() const;
  // As text: "model.kind" "gpt", "model.width" "64", ...
  Metadata as_written() const;
  // The same, sizes that follow from others written out.
  Metadata description() const;
  // Random inputs: images [rows, side, side, channels], or ids [rows, context] in which every id of the vocabulary
  // occurs; more rows where it takes them.
  Tensor inputs(int64_t rows, uint64_t seed) const;

 private:
  ModelOptions(const ModelRow& row, std::any options);
  // All options, in their order; they refer to this object, `o` and `shape`.
  std::vector<NamedOption> visited(TrainingOptions& o, ModelShape& shape);

  const ModelRow* row_;
  std::any options_;
  nn::TransformerOptions plain_ = {};  // of a model that is made of no Transformer's options: the defaults
  streams::StreamOptions stream_;
};

// Every option of the model as "model.<name>": "model.kind" "gpt", "model.width" "64", "model.stream" "rms_norm",
// "model.storage" "raw", ... To be saved with its weights:
//   training::save_model("gpt.safetensors", model);
// Throws where no row is of its type, and where its connections are a program's own.
Metadata describe(const nn::Module& model, ModelList models = kModels);

// Throws where weights cannot be carried from form to form: where the connections are none of nn/residual/all.h, or have
// a learned gain and are not pre_ln, which alone hands it to its readers.
void check_carried(const nn::TransformerOptions& options);

// Throws, as `verb`, where a training computes in mixed precision: what the forms' rounding is held against is known for
// one dtype throughout.
void check_full_precision(const nn::MixedPrecision& precision, const char* verb);

// The coordinates that a described model's parameters are in: raw ones are the Pre-LN model's, whatever its form.
streams::Form stored_form(const ModelOptions& options);

}  // namespace isonorm::training
