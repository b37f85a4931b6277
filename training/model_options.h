// ModelOptions: what a model is, whichever it is: its row, its options and the stream that it is put on.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "training/model_row.h"

namespace isonorm::training {

inline constexpr std::string_view kOptionPrefix = "model.";
inline constexpr const char* kModelKind = "model.kind";  // the row, which every description has
inline constexpr int64_t kMostTokens = 4096;             // of random inputs, if the vocabulary has no more

// Options of models that version 0.1.0 did not have at first, with the value that its models had. Files without an entry for such an
// option mean this value.
inline constexpr std::pair<std::string_view, const char*> kNewModelOptions[] = {{"head_bias", "true"}};

// What the data decide about a model.
struct ModelShape {
  int64_t image = 28, channels = 1, classes = 10;  // of images
  int64_t vocab = 0;                               // of ids
};

// An option by name, with the value that it is to have: {"context", 6}.
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
  // {kGpt, {.width = 16, .depth = 2}, {{"context", 8}, {"tied", true}}}: the defaults but for these. Throws as set().
  ModelOptions(const ModelRow& row = kVit, const nn::TransformerOptions& transformer = {},
               std::initializer_list<NamedValue> own = {});
  // As describe() wrote them. Throws, naming the entry, where one is missing, unknown or has no meaning.
  explicit ModelOptions(const Metadata& description, ModelList models = kModels);
  // Those of a published size of a model (ModelRow::preset). Throws where there is none of that name.
  static ModelOptions preset(const ModelRow& row, std::string_view name);
  // Those of a module, its stream the one that it was put on, or else that of its norms; none where no row is of its type.
  static std::optional<ModelOptions> of(const nn::Module& module, ModelList models = kModels);

  const ModelRow& row() const { return *row_; }
  const nn::TransformerOptions& transformer() const { return const_cast<ModelOptions*>(this)->transformer(); }
  nn::TransformerOptions& transformer() { return config_->transformer() ? *config_->transformer() : plain_; }
  const streams::StreamOptions& stream() const { return stream_; }
  streams::StreamOptions& stream() { return stream_; }

  // Every option, in order: the model's own, its Transformer's, its stream's; or the one of that name, where there is
  // one. They refer to this object.
  std::vector<Option> options(std::string_view only = {});
  bool has(std::string_view name) const;
  std::string value(std::string_view name) const;  // as text; "" where the model has no such option
  int64_t number(std::string_view name) const;     // 0 where it has none
  bool flag(std::string_view name) const { return value(name) == "true"; }
  // The first option that has none of these marks (training/options/option.h) and not its default value, as
  // "connection post_ln, expected pre_ln"; empty if there is none.
  std::string first_without(unsigned marks) const;
  // Throws where the model has no such option, or it cannot be that.
  void set(const NamedValue& option);

  ModelShape shape() const;
  int64_t context() const { return has("context") ? number("context") : 64; }  // ids in an example
  // Ids in a row of random inputs: the first positions of a long context. No tensor limits a context of rotary positions.
  int64_t shown_context() const { return std::min(context(), kMostTokens); }
  // Sets those that the model has. Throws where one cannot be that.
  void fit(std::initializer_list<NamedValue> options);
  void fit(const ModelShape& s) {
    fit({{"image", s.image}, {"channels", s.channels}, {"classes", s.classes}, {"vocab", s.vocab}});
  }

  // Throws where a model of these sizes has far more parameters than `state`: before memory is taken for it.
  void check_size(const TensorMap& state) const;
  // Whether one number added to this parameter is added to the stream as it enters.
  bool enters(std::string_view parameter) const { return config_->enters(parameter); }
  // The model on its stream, with initial parameters of dtype f32, in training mode.
  std::unique_ptr<nn::Module> make() const { return make(stream_); }
  std::unique_ptr<nn::Module> make(const streams::StreamOptions& stream) const { return config_->make(stream); }
  // The model with parameters of dtype f64, in evaluation mode: it computes in f64, whatever its precision. The values
  // are to be loaded: none are drawn (nn::SkipInit).
  std::unique_ptr<nn::Module> build() const;
  // As text: "model.kind" "gpt", "model.width" "64", ...
  Metadata as_written() const;
  // The same with sizes that follow from others written out.
  ModelOptions complete() const;
  Metadata description() const { return complete().as_written(); }
  // Random inputs: images [rows, side, side, channels], ids [rows, shown_context()] or pairs [rows, 2 shown_context()]. Every
  // id of the vocabulary occurs. The number of rows is larger if the vocabulary needs it, and smaller if they would have more
  // than kMostTokens tokens.
  Tensor inputs(int64_t rows, uint64_t seed) const;

 private:
  ModelOptions(const ModelRow& row, std::unique_ptr<ModelConfig> config);
  void take_norm();  // from the Transformer's options into the stream's, whose form says what norms there are

  const ModelRow* row_;
  std::unique_ptr<ModelConfig> config_;
  nn::TransformerOptions plain_ = {};  // of a model that is made of no Transformer's options: the defaults
  streams::StreamOptions stream_;
};

// Whether models of this row have an option of that name: "tied".
bool has(const ModelRow& row, std::string_view option);
// Whether the option of this key ("model.dropout") has the mark kTrainingOnly.
bool is_training_only(std::string_view key);
// The names of the models that have the option, or that read such input: "vit, mixer".
std::string models_with(std::string_view option, const char* separator = ", ");
std::string models_with(Input input, const char* separator = ", ");

// Every option of the model as "model.<name>": "model.kind" "gpt", "model.width" "64", "model.form" "rms_norm",
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
