// ModelOptions: the description of any model: its row, its options, and its stream.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "training/model_row.h"

namespace isonorm::training {

struct TrainingOptions;

inline constexpr std::string_view kOptionPrefix = "model.";
inline constexpr const char* kModelKind = "model.kind";  // the name of the row; every description has it
inline constexpr int64_t kMostTokens = 4096;  // limit for tokens of random inputs, unless the vocabulary is larger

// Options of models that version 0.1.0 did not have at first, with the value that its models had. Files without an
// entry for such an option mean this value.
inline constexpr std::pair<std::string_view, const char*> kNewModelOptions[] = {{"head_bias", "true"}};

// An option of models that older files have, with the only value that can be loaded.
inline constexpr std::pair<const char*, const char*> kRemovedModelOption = {"recentring", "last"};
inline bool is_removed(std::string_view key, std::string_view value) {
  return key == text(kOptionPrefix, kRemovedModelOption.first) && value == kRemovedModelOption.second;
}

// Sizes of a model that the data determine.
struct ModelShape {
  int64_t image = 28, channels = 1, classes = 10;  // for images
  int64_t vocab = 0;                               // for token ids
};

// An option by name, with its new value: {"context", 6}.
struct NamedValue {
  template <class T> NamedValue(const char* option, T value) : name(option), word(Word<T>::written(value)) {}
  const char* name;
  std::string word;
};

class ModelOptions {
 public:
  ModelOptions(const ModelOptions& other);
  ModelOptions(ModelOptions&&) = default;
  ModelOptions& operator=(ModelOptions other);
  // {kGpt, {.width = 16, .depth = 2}, {{"context", 8}, {"tied", true}}}: defaults except for these values. Throws as
  // set().
  ModelOptions(const ModelRow& row = kVit, const nn::TransformerOptions& transformer = {},
               std::initializer_list<NamedValue> own = {});
  // Reads the result of describe(). Throws, naming the entry, if one is missing, unknown or invalid.
  explicit ModelOptions(const Metadata& description, ModelList models = kModels);
  // Returns the options of a published size (ModelRow::preset). Throws if no published size has this name.
  static ModelOptions preset(const ModelRow& row, std::string_view name);
  // The options of a module and its stream: the one that it was put on, or else the plain form of its norms. Nothing if
  // no row has the module's type.
  static std::optional<ModelOptions> of(const nn::Module& module, ModelList models = kModels);

  const ModelRow& row() const { return *row_; }
  const nn::TransformerOptions& transformer() const { return const_cast<ModelOptions*>(this)->transformer(); }
  nn::TransformerOptions& transformer() { return config_->transformer() ? *config_->transformer() : plain_; }
  const streams::StreamOptions& stream() const { return stream_; }
  streams::StreamOptions& stream() { return stream_; }

  // All options in order: the model's own, its Transformer's, its stream's; with `only`, at most the one with this
  // name. They refer to this object.
  std::vector<Option> options(std::string_view only = {});
  bool has(std::string_view name) const;
  std::string value(std::string_view name) const;  // as text; "": the model has no such option
  int64_t number(std::string_view name) const;     // 0: the model has no such option
  bool flag(std::string_view name) const { return value(name) == "true"; }
  // The first option that has none of these marks (training/options/option.h) and not its default value, as
  // "connection post_ln, expected pre_ln"; empty if there is none.
  std::string first_without(unsigned marks) const;
  // Throws if the model has no such option, or the value is invalid.
  void set(const NamedValue& option);

  ModelShape shape() const;
  int64_t context() const { return has("context") ? number("context") : 64; }  // tokens in an example
  // Tokens in a row of random inputs: the context, but at most kMostTokens. (No tensor limits a context with rotary
  // positions.)
  int64_t shown_context() const { return std::min(context(), kMostTokens); }
  // Sets the options that the model has and ignores others. Throws if a value is invalid.
  void fit(std::initializer_list<NamedValue> options);
  void fit(const ModelShape& s) {
    fit({{"image", s.image}, {"channels", s.channels}, {"classes", s.classes}, {"vocab", s.vocab}});
  }

  // Throws if a model of these sizes has far more parameters than `state`: before memory is allocated.
  void check_size(const TensorMap& state) const;
  // True if a number added to this parameter is added to the stream at its entry.
  bool enters(std::string_view parameter) const { return config_->enters(parameter); }
  // Makes the model on its stream, with initial parameters of dtype f32, in training mode.
  std::unique_ptr<nn::Module> make() const { return make(stream_); }
  std::unique_ptr<nn::Module> make(const streams::StreamOptions& stream) const { return config_->make(stream); }
  // Makes the model with f64 parameters, in evaluation mode: it computes in f64, whatever its precision. The values are
  // not initialized, because the caller loads them (nn::SkipInit).
  std::unique_ptr<nn::Module> build() const;
  // As text: "model.kind" "gpt", "model.width" "64", ...
  Metadata as_written() const;
  // The same options, with sizes that follow from others written out.
  ModelOptions complete() const;
  Metadata description() const { return complete().as_written(); }
  // Random inputs: images [rows, side, side, channels], ids [rows, shown_context()] or pairs [rows, 2 shown_context()].
  // Every id of the vocabulary occurs. The number of rows is larger if the vocabulary needs it, and smaller if there
  // would be more than kMostTokens tokens.
  Tensor inputs(int64_t rows, uint64_t seed) const;

 private:
  ModelOptions(const ModelRow& row, std::unique_ptr<ModelConfig> config);
  // Sets the stream's form from the norm in the Transformer's options, and causal if the row is.
  void take_defaults();

  const ModelRow* row_;
  std::unique_ptr<ModelConfig> config_;
  nn::TransformerOptions plain_ = {};  // defaults, for a model without TransformerOptions
  streams::StreamOptions stream_;
};

// Makes the model of `options` on the given stream, with parameters of options.dtype on options.device. Initial values
// are drawn on the CPU, so they are the same for every device.
std::unique_ptr<nn::Module> build_model(const TrainingOptions& options, const streams::StreamOptions& stream);

// True if models of this row have an option with this name: "tied".
bool has(const ModelRow& row, std::string_view option);
// True if the option of this key ("model.dropout") has the mark kTrainingOnly.
bool is_training_only(std::string_view key);
// The names of the models that have the option, or that take this input: "vit, mixer".
std::string models_with(std::string_view option, const char* separator = ", ");
std::string models_with(Input input, const char* separator = ", ");

// All options of the model as "model.<name>": "model.kind" "gpt", "model.width" "64", "model.form" "rms_norm",
// "model.storage" "raw", ... Saved with its weights by
//   training::save_model("gpt.safetensors", model);
// Throws if no row has the module's type, if its connections are defined outside of the library, or if a parameter has
// a parametrisation that was added to the model.
Metadata describe(const nn::Module& model, ModelList models = kModels);

// Throws if weights cannot be converted between forms: if the connections are not in nn/residual/all.h, or have a
// learned gain and are not pre_ln, whose readers alone can absorb it.
void check_carried(const nn::TransformerOptions& options);

// Throws, in the name of `verb`, if a training uses mixed precision: the bounds for rounding are known only for a
// single dtype.
void check_full_precision(const nn::MixedPrecision& precision, const char* verb);

// The form whose coordinates the parameters are stored in; for raw storage the Pre-LN model's.
streams::Form stored_form(const ModelOptions& options);

}  // namespace isonorm::training
