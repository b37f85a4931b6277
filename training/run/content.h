// Contents of a checkpoint by name. Content has two functions: one returns its state, the other loads a state. Trainer
// and SavedTraining write and read their files by add_content() and contents_of().
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "core/tensor_map.h"
#include "io/checkpoint.h"
#include "nn/module.h"
#include "optim/ema.h"
#include "optim/optimizer.h"

namespace isonorm::training {

class BestLoss;

// A class whose objects have a state of named tensors: modules, optimizers, optim::Ema, optim::ReduceOnPlateau, and
// classes of the user. load_state_dict() throws, and changes nothing, if the tensors are the state of another object.
template <class T>
concept HasState = requires(T& object, const TensorMap& state) {
  { object.state_dict() } -> std::same_as<TensorMap>;
  object.load_state_dict(state);
};

template <class T>
concept SavedValue = std::is_arithmetic_v<T> || std::same_as<T, std::string> || std::derived_from<T, Tensor> ||
    std::same_as<T, TensorMap>;

// Named tensors and a text. The tensor of a content that is a tensor has the name "".
struct ContentState {
  TensorMap tensors = {};
  std::string text = {};
};

struct SavedContent {
  std::string kind;  // Content::kind()
  ContentState state = {};
};
using SavedContents = std::map<std::string, SavedContent>;

// The contents that every training may have. They have no entry "content.<name>" in a file:
//   model      tensors "weights.<parameter>"
//   optimizer  tensors "optimizer.<state>", and its kind is the value "optimizer"
//   average    tensors "optimizer.average.<state>"
//   best       the value "tests"; none before the first test pass
// Any other content has the value "content.<name>": its kind, and its text after a space. Its tensors are
// "<section>.<name>.<tensor>", or "<section>.<name>" for a content that is a tensor. The section is "weights" for models
// and tensors, else "optimizer". (Older files have the contents above in this way, too, if the program named them.)
inline constexpr const char *kModel = "model", *kOptimizer = "optimizer", *kAverage = "average", *kBest = "best";
inline constexpr const char* kTests = "tests";

// Adds a content to a checkpoint.
void add_content(Checkpoint& checkpoint, const std::string& name, const SavedContent& content);
// Returns the contents of a checkpoint. Tensors without the name of a content are the model's or the optimizer's.
SavedContents contents_of(const Checkpoint& checkpoint);

//   {"critic", critic}    a module, an optimizer, an Ema, a BestLoss or another object that HasState
//   {"seen", seen}        a number, a std::string or a Tensor
//   {"losses", [&] { return tensor(losses); }, [&](const Tensor& x) { losses = x.to_vector<double>(); }}
//
// The first two keep a reference to the object. A Tensor is loaded in place; the tensor in the file has to have its
// shape and dtype. The third keeps two functions: one returns a SavedValue, the other takes the value from a file. If
// the other refuses the value, it throws before it changes anything.
//
// Names consist of letters, digits, _ and -. The constructors throw on other names.
class Content {
 public:
  template <HasState T>
  Content(std::string name, T& object)
      : Content(
            std::move(name), kind_of(object),
            [&object] {
              return ContentState{live_state(object), {}};
            },
            [&object](const ContentState& state) { object.load_state_dict(state.tensors); }) {}
  Content(std::string name, BestLoss& best);
  template <SavedValue T>
  Content(std::string name, T& value)
      : Content(std::move(name), Functions<Stored<T>>{[&value] { return static_cast<Stored<T>>(value); },
                                                      [&value](const Stored<T>& given) { assign(value, given); }}) {}
  template <class Get, class Set, class T = std::decay_t<std::invoke_result_t<Get&>>>
  requires SavedValue<T> && std::invocable<Set&, T> Content(std::string name, Get get, Set set)
      : Content(std::move(name), Functions<Stored<T>>{[get] { return static_cast<Stored<T>>(get()); },
                                                      [set](const Stored<T>& given) { set(narrowed<T>(given)); }}) {}

  const std::string& name() const { return name_; }
  // "model", "average", "best", "state", "integer", "number", "text", "tensor", or of an optimizer its name().
  const std::string& kind() const { return kind_; }
  // Returns the present state. Its tensors may be the object's own, which training changes.
  ContentState state() const { return state_(); }
  // Loads a copy of a state. Throws, and changes nothing, if the state is of another object.
  void load(const ContentState& state) const { load_(state); }

 private:
  using State = std::function<ContentState()>;
  using Load = std::function<void(const ContentState&)>;
  // The type that a value has in a file.
  template <class T>
  using Stored = std::conditional_t<
      std::integral<T>, int64_t,
      std::conditional_t<std::floating_point<T>, double, std::conditional_t<std::derived_from<T, Tensor>, Tensor, T>>>;
  template <class V> struct Functions {
    std::function<V()> get;
    std::function<void(const V&)> set;
  };

  Content(std::string name, std::string kind, State state, Load load);
  Content(std::string name, Functions<int64_t> integer);
  Content(std::string name, Functions<double> number);
  Content(std::string name, Functions<std::string> text);
  Content(std::string name, Functions<Tensor> tensor);
  Content(std::string name, Functions<TensorMap> tensors);

  template <class T> static std::string kind_of(const T& object) {
    if constexpr (std::derived_from<T, optim::Optimizer>)
      return object.name();
    else
      return std::derived_from<T, nn::Module> ? "model" : std::same_as<T, optim::Ema> ? "average" : "state";
  }
  template <class T> static TensorMap live_state(const T& object) {
    if constexpr (requires { object.live_state(); })
      return object.live_state();
    else
      return object.state_dict();
  }
  template <class T> static T narrowed(const Stored<T>& given) {
    if constexpr (std::same_as<T, float>) return to_float(given);
    const T value = static_cast<T>(given);
    if constexpr (std::integral<T>) check_fits(static_cast<int64_t>(value) == given, given, sizeof value);
    return value;
  }
  template <class T> static void assign(T& value, const Stored<T>& given) {
    if constexpr (std::derived_from<T, Tensor>)
      copy_values(value, given);
    else
      value = narrowed<T>(given);
  }
  static float to_float(double given);  // throws if `given` is beyond the range of float
  static void check_fits(bool fits, int64_t given, size_t bytes);
  static void copy_values(const Tensor& to, const Tensor& from);

  std::string name_, kind_;
  State state_;
  Load load_;
};

}  // namespace isonorm::training
