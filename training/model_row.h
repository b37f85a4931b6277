// What a model is to all that trains, saves, loads and compares it: a row of data. docs/adding_a_model.md walks through
// one.
#pragma once

#include <any>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "nn/module.h"
#include "streams/transformer.h"
#include "training/options/option.h"

namespace isonorm::training {

// images: floating [n, side, side, channels], a class each. characters: ids (i64) [n, context], the next id at each.
// pairs: ids [n, 2 context], a source and behind it a target (data/pairs.h), the next id at each of the target.
enum class Input { images, characters, pairs };
constexpr const char* name_of(Input i) { return i == Input::images ? "images" : "tokens"; }  // of predictions

struct ModelRow {
  const char* name;   // on the command line and in files: "gpt"
  const char* title;  // "GPT"
  const char* noun;   // "language model"
  Input input;        // the loss is the cross-entropy of the logits, whatever the input
  bool causal = false;
  const char* tied_table =
      "";  // that a head can read with in place of a weight of its own; empty: there is no such head

  // row_of() sets the members below. They take and return the options without their type.
  std::any (*options)() = nullptr;                              // the defaults
  std::any (*preset)(std::string_view) = nullptr;               // options of a published size; null: no size has a name
  std::any (*options_of)(const nn::Module&) = nullptr;          // empty if the module is of another model
  nn::TransformerOptions& (*transformer)(std::any&) = nullptr;  // null: the model has no such options
  void (*complete)(std::any&) = nullptr;                        // sets the sizes that follow from others
  void (*fields)(std::any&, Fields&) = nullptr;
  int64_t (*stream_rows)(const std::any&) = nullptr;
  int64_t (*more_blocks)(const std::any&) = nullptr;
  bool (*enters)(std::string_view, const std::any&) = nullptr;
  std::unique_ptr<nn::Module> (*make)(const std::any&, const streams::StreamOptions&) = nullptr;
};

constexpr const char* name_of(const ModelRow* m) { return m->name; }

// The models by name, in the order in which the command line lists them. Each has a row of its own,
// training/models/<name>.cpp.
extern const ModelRow kVit, kGpt, kTranslator;
inline constexpr const ModelRow* kModels[] = {&kVit, &kGpt, &kTranslator};
// Where a name or a module is looked up: kModels, or a list with rows of a program's own.
using ModelList = std::span<const ModelRow* const>;

// Completes `row` from the class M of a model:
//   using Module      a module that streams::make() can make. It has public `options` and a layout_of(). The options
//                     may have a TransformerOptions `transformer`, and a complete() if some sizes follow from others
//   fields(m, f)      calls f(name, member, help, limits) for every option of the model outside of `transformer`. The
//                     data decide "image", "channels" and "classes", or "vocab"; "context" is the ids in an example
//   stream_rows(m)    about how many rows of the stream's width the parameters outside of the blocks have. Throws if
//                     there is no model of these options
//   more_blocks(m)    blocks outside of `transformer`, for complete options; 0 if M does not have it
//   preset(name)      only if sizes were published: the options of the size `name`. Throws, listing the names, if there
//                     is no such size
//   enters(name, m)   true if a number added to this parameter is added to the stream at its entry. If several
//                     parameters do so for the same rows, only one is true
template <class M> constexpr ModelRow row_of(ModelRow row) {
  using Module = typename M::Module;
  using Options = std::remove_const_t<decltype(Module::options)>;
  row.options = [] { return std::any(Options{}); };
  if constexpr (requires { M::preset(std::string_view()); })
    row.preset = [](std::string_view name) { return std::any(M::preset(name)); };
  row.options_of = [](const nn::Module& module) {
    const auto* mine = dynamic_cast<const Module*>(&module);
    return mine ? std::any(mine->options) : std::any();
  };
  if constexpr (requires(Options & o) { o.transformer; })
    row.transformer = [](std::any& m) -> nn::TransformerOptions& { return std::any_cast<Options&>(m).transformer; };
  row.complete = [](std::any& m) {
    auto& options = std::any_cast<Options&>(m);
    if constexpr (requires { options.complete(); })
      options = options.complete();
    else if constexpr (requires { options.transformer; })
      options.transformer = options.transformer.complete();
  };
  row.fields = [](std::any& m, Fields& f) { M::fields(std::any_cast<Options&>(m), f); };
  row.stream_rows = [](const std::any& m) { return M::stream_rows(std::any_cast<const Options&>(m)); };
  row.more_blocks = [](const std::any& m) -> int64_t {
    if constexpr (requires(const Options& o) { M::more_blocks(o); })
      return M::more_blocks(std::any_cast<const Options&>(m));
    return 0;
  };
  row.enters = [](std::string_view name, const std::any& m) {
    return M::enters(name, std::any_cast<const Options&>(m));
  };
  row.make = [](const std::any& m, const streams::StreamOptions& stream) -> std::unique_ptr<nn::Module> {
    return std::make_unique<Module>(streams::make<Module>(std::any_cast<const Options&>(m), stream));
  };
  return row;
}

}  // namespace isonorm::training
