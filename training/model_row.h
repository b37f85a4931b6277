// A model, for code that trains, saves, loads and compares it: a row of data. docs/adding_a_model.md walks through
// one.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "nn/module.h"
#include "streams/transformer.h"
#include "training/options/option.h"

namespace isonorm::training {

// images: floating [n, side, side, channels]; the target is one class per image. text: ids (i64) [n, context]; the
// target is the next id at each position. pairs: ids [n, 2 context], a source followed by a target sequence
// (io/data/pairs.h); the target is the next id at each position of the target sequence.
enum class Input { images, text, pairs };
constexpr const char* name_of(Input i) { return i == Input::images ? "images" : "tokens"; }  // of predictions

// The options of a model, type-erased: the interface that training, files and comparisons use.
class ModelConfig {
 public:
  virtual ~ModelConfig() = default;
  virtual std::unique_ptr<ModelConfig> clone() const = 0;
  // Makes the model on its stream, with initial parameters.
  virtual std::unique_ptr<nn::Module> make(const streams::StreamOptions& stream) const = 0;
  // Sets the sizes that follow from others.
  virtual void complete() = 0;
  virtual nn::TransformerOptions* transformer() = 0;  // null: the model has no such options

  // Calls f(name, member, help, limits) for every option of the model outside of transformer(). The data decide
  // "image", "channels" and "classes", or "vocab"; "context" is the ids in an example.
  virtual void fields(Fields& f) = 0;
  // Estimates the size of the parameters outside of the blocks, as a number of rows of the stream's width. Throws if
  // there is no model of these options.
  virtual int64_t stream_rows() const = 0;
  // Blocks outside of transformer(), for complete options.
  virtual int64_t more_blocks() const { return 0; }
  // True if a number added to this parameter is added to the stream at its entry. If several parameters do so for the
  // same rows, only one is true.
  virtual bool enters(std::string_view parameter) const = 0;
};

// The ModelConfig of a class M that streams::make() can make. M has public `options` and a layout_of(). The options may
// have a TransformerOptions `transformer`, and a complete() if some sizes follow from others. `Derived` adds fields(),
// stream_rows() and enters(), and if sizes were published
//   static Options preset(std::string_view name)  throws, listing the names, if there is no such size
template <class Derived, class M> class ConfigOf : public ModelConfig {
 public:
  using Module = M;
  using Options = std::remove_const_t<decltype(M::options)>;
  Options options;  // the default constructor of Derived may change the defaults

  std::unique_ptr<ModelConfig> clone() const final {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
  std::unique_ptr<nn::Module> make(const streams::StreamOptions& stream) const final {
    return std::make_unique<M>(streams::make<M>(options, stream));
  }
  void complete() final {
    if constexpr (requires(const Options& o) { o.complete(); })
      options = options.complete();
    else if constexpr (requires(const Options& o) { o.transformer; })
      options.transformer = options.transformer.complete();
  }
  nn::TransformerOptions* transformer() final {
    if constexpr (requires(const Options& o) { o.transformer; }) return &options.transformer;
    return nullptr;
  }
};

struct ModelRow {
  const char* name;   // on the command line and in files: "gpt"
  const char* title;  // "GPT"
  const char* noun;   // "language model"
  Input input;        // the loss is the cross-entropy of the logits, whatever the input
  bool causal = false;
  const char* tied_table = "";  // the table that a tied head reads; empty: the head cannot be tied

  // row_of() sets these.
  std::unique_ptr<ModelConfig> (*defaults)() = nullptr;
  std::unique_ptr<ModelConfig> (*preset)(std::string_view) = nullptr;      // null: no size has a name
  std::unique_ptr<ModelConfig> (*config_of)(const nn::Module&) = nullptr;  // gives null if the module is no such model
};

constexpr const char* name_of(const ModelRow* m) { return m->name; }

// The models by name, in the command line's order. Each has a row of its own,
// training/models/<name>.cpp.
extern const ModelRow kVit, kGpt, kTranslator;
inline constexpr const ModelRow* kModels[] = {&kVit, &kGpt, &kTranslator};
// A list in which names and modules are looked up: kModels, or a list that a program made with additional rows.
using ModelList = std::span<const ModelRow* const>;

// Completes `row`: sets its functions defaults, config_of and, if Config has one, preset, to those of `Config`, a class
// derived from ConfigOf.
template <class Config> constexpr ModelRow row_of(ModelRow row) {
  row.defaults = []() -> std::unique_ptr<ModelConfig> { return std::make_unique<Config>(); };
  row.config_of = [](const nn::Module& module) -> std::unique_ptr<ModelConfig> {
    const auto* mine = dynamic_cast<const typename Config::Module*>(&module);
    if (!mine) return nullptr;
    auto config = std::make_unique<Config>();
    config->options = mine->options;
    return config;
  };
  if constexpr (requires { Config::preset(std::string_view()); })
    row.preset = [](std::string_view name) -> std::unique_ptr<ModelConfig> {
      auto config = std::make_unique<Config>();
      config->options = Config::preset(name);
      return config;
    };
  return row;
}

}  // namespace isonorm::training
