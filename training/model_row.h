// What a model is to all that trains, saves, loads and compares it: a row of data. docs/adding_a_model.md walks through
// one.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "nn/module.h"
#include "streams/transformer.h"
#include "training/options/option.h"

namespace isonorm::training {

// images: floating [n, side, side, channels], a class each. text: ids (i64) [n, context], the next id at each.
// pairs: ids [n, 2 context], a source and behind it a target (io/data/pairs.h), the next id at each of the target.
enum class Input { images, text, pairs };
constexpr const char* name_of(Input i) { return i == Input::images ? "images" : "tokens"; }  // of predictions

// The options of some model: a value whose type only its row knows. It is std::any, without that class's name, which a script
// with `using namespace std; using namespace isonorm;` could not tell from isonorm::any().
class AnyOptions {
 public:
  AnyOptions() = default;  // empty
  template <class O> explicit AnyOptions(O options) : held_(std::make_unique<Held<O>>(std::move(options))) {}
  AnyOptions(const AnyOptions& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  AnyOptions(AnyOptions&&) = default;
  AnyOptions& operator=(AnyOptions other) {
    held_ = std::move(other.held_);
    return *this;
  }

  bool has_value() const { return held_ != nullptr; }
  // Throws std::bad_cast if the options are of another type.
  template <class O> O& as() { return dynamic_cast<Held<O>&>(*held_).options; }
  template <class O> const O& as() const { return dynamic_cast<const Held<O>&>(*held_).options; }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
  };
  template <class O> struct Held : Base {
    explicit Held(O o) : options(std::move(o)) {}
    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(options); }
    O options;
  };
  std::unique_ptr<Base> held_;
};

struct ModelRow {
  const char* name;   // on the command line and in files: "gpt"
  const char* title;  // "GPT"
  const char* noun;   // "language model"
  Input input;        // the loss is the cross-entropy of the logits, whatever the input
  bool causal = false;
  const char* tied_table =
      "";  // that a head can read with in place of a weight of its own; empty: there is no such head

  // row_of() sets the members below. They take and return the options without their type.
  AnyOptions (*options)() = nullptr;                      // the defaults
  AnyOptions (*preset)(std::string_view) = nullptr;       // options of a published size; null: no size has a name
  AnyOptions (*options_of)(const nn::Module&) = nullptr;  // empty if the module is of another model
  nn::TransformerOptions& (*transformer)(AnyOptions&) = nullptr;  // null: the model has no such options
  void (*complete)(AnyOptions&) = nullptr;                        // sets the sizes that follow from others
  void (*fields)(AnyOptions&, Fields&) = nullptr;
  int64_t (*stream_rows)(const AnyOptions&) = nullptr;
  int64_t (*more_blocks)(const AnyOptions&) = nullptr;
  bool (*enters)(std::string_view, const AnyOptions&) = nullptr;
  std::unique_ptr<nn::Module> (*make)(const AnyOptions&, const streams::StreamOptions&) = nullptr;
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
//   defaults()        only if the program's defaults are not those of Module::options
//   preset(name)      only if sizes were published: the options of the size `name`. Throws, listing the names, if there
//                     is no such size
//   enters(name, m)   true if a number added to this parameter is added to the stream at its entry. If several
//                     parameters do so for the same rows, only one is true
template <class M> constexpr ModelRow row_of(ModelRow row) {
  using Module = typename M::Module;
  using Options = std::remove_const_t<decltype(Module::options)>;
  row.options = [] {
    if constexpr (requires { M::defaults(); }) return AnyOptions(M::defaults());
    return AnyOptions(Options{});
  };
  if constexpr (requires { M::preset(std::string_view()); })
    row.preset = [](std::string_view name) { return AnyOptions(M::preset(name)); };
  row.options_of = [](const nn::Module& module) {
    const auto* mine = dynamic_cast<const Module*>(&module);
    return mine ? AnyOptions(mine->options) : AnyOptions();
  };
  if constexpr (requires(Options & o) { o.transformer; })
    row.transformer = [](AnyOptions& m) -> nn::TransformerOptions& { return m.as<Options>().transformer; };
  row.complete = [](AnyOptions& m) {
    auto& options = m.as<Options>();
    if constexpr (requires { options.complete(); })
      options = options.complete();
    else if constexpr (requires { options.transformer; })
      options.transformer = options.transformer.complete();
  };
  row.fields = [](AnyOptions& m, Fields& f) { M::fields(m.as<Options>(), f); };
  row.stream_rows = [](const AnyOptions& m) { return M::stream_rows(m.as<Options>()); };
  row.more_blocks = [](const AnyOptions& m) -> int64_t {
    if constexpr (requires(const Options& o) { M::more_blocks(o); }) return M::more_blocks(m.as<Options>());
    return 0;
  };
  row.enters = [](std::string_view name, const AnyOptions& m) { return M::enters(name, m.as<Options>()); };
  row.make = [](const AnyOptions& m, const streams::StreamOptions& stream) -> std::unique_ptr<nn::Module> {
    return std::make_unique<Module>(streams::make<Module>(m.as<Options>(), stream));
  };
  return row;
}

}  // namespace isonorm::training
