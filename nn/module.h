// Module: the owner of named parameters and child modules. Members of a module are the references that add() returns;
// the order of declaration is the order of registration:
//
//   struct Net : nn::Module {
//     nn::Linear& fc1 = add("fc1", nn::Linear(784, 256));
//     nn::Linear& fc2 = add("fc2", nn::Linear(256, 10));
//     Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
//   };
//
// Members that are parameters and buffers are references, too: Parameter& gain = add_parameter("gain", ones({8})). An
// assignment to one reaches the module: see Parameter::operator= for weight tying.
//
// A plain member (nn::Linear fc1{784, 256};) would not train: parameters() does not have it. The first forward that
// runs it throws and says so (nn/module_scope.h), and an optimizer of no parameters does.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/checked_vector.h"
#include "core/random.h"
#include "core/tensor_map.h"
#include "nn/hooks.h"
#include "nn/modes.h"
#include "nn/parameter.h"

namespace isonorm::nn {

struct NamedParameter {
  std::string name;  // path from the module that was asked: "blocks.0.attn.qkv.weight"
  Tensor tensor;
  // Rows of dimension 0 that the loss does not depend on (the biases of attention keys), as
  // [begin, end).
  int64_t blind_begin = 0, blind_end = 0;
  std::span<const std::shared_ptr<const Parametrisation>> parametrisations = {};  // empty: the stored tensor is seen
  bool is_part = false;                                                           // Parameter::hold_part
  std::vector<std::string> aliases = {};  // further names of a tied tensor; load_state_dict() takes either
};

// for (const auto& [name, tensor] : net.named_parameters()) ...
template <size_t I> const auto& get(const NamedParameter& p) {
  if constexpr (I == 0)
    return p.name;
  else
    return p.tensor;
}

struct LoadOptions {
  bool strict = true;            // every name has to be there on both sides
  bool skip_mismatched = false;  // leaves out tensors of another shape, for example a head for other classes
};

// Names that load_state_dict() left out.
struct LoadedState {
  std::vector<std::string> missing;          // the module has them alone: they kept their values
  std::vector<std::string> unexpected;       // the given tensors have them alone
  std::vector<std::string> mismatched = {};  // both have them, in another shape: they kept their values
};

class Module {
 public:
  Module();
  virtual ~Module();
  // Moving keeps the addresses of parameters and children, hence the references to them. Copying is clone().
  Module(Module&& other) noexcept;
  Module(const Module&) = delete;  // give std::move(m), nn::clone(m) or nn::shared(m)
  Module& operator=(const Module&) = delete;

  // Runs forward(x); errors inside name the path of this module. Modules with other arguments declare their own
  // operator(), which begins with ModuleScope scope(*this).
  Tensor operator()(const Tensor& x);

  // Parameters of this module and its children, in order of registration. A tensor that has several names (weight
  // tying) is listed once, under the first.
  std::vector<NamedParameter> named_parameters() const;
  std::vector<Tensor> parameters() const;
  int64_t parameter_count() const;

  // Names and tensors; a module's buffers follow its parameters. These are the parameters and buffers themselves, and
  // training changes them; clone(state_dict()) keeps their present values. Throws if a parameter is a rank's part
  // (Parameter::hold_part): a file of the tensors would lack the other ranks' parts. parallel::Parts::whole() has them
  // all.
  TensorMap state_dict() const;
  // The same tensors with their descriptions, including parts.
  std::vector<NamedParameter> named_state() const;
  // Copies values in. If names or shapes are not exactly this module's, throws one table of missing, unexpected and
  // mis-shaped names, and says if the names have a prefix, or if they are PyTorch's. Also throws if the tensors are
  // PyTorch's (TensorMap::is_torch()) and a convolution's weight fits: its layout there is another (nn/torch_state.h).
  // Nothing is rounded silently: if a dtype differs, throws, naming the first tensor. Nothing changes then. With
  // {.strict = false} the names that both have are loaded and the others returned. With {.skip_mismatched = true}
  // tensors of another shape are left out and their names returned. Dtypes still have to fit, and one tensor has to be
  // loaded. A tied tensor is given under any of its names. If it is given under several, the values have to be equal.
  LoadedState load_state_dict(const TensorMap& state, LoadOptions options = {});

  // Clears every parameter's gradient, as Optimizer::zero_grad() does.
  void zero_grad();

  void train(bool on = true);  // for this module and all children; dropout acts in training only
  void eval() { train(false); }
  bool training() const;  // what train() set; false while an EvaluationMode of this thread lives (nn/modes.h)

  // Freezes all parameters of this module and its children, or thaws them: they take no gradient, ops that only frozen
  // ones lead to are not recorded, and the backward ends before them. Optimizers leave frozen parameters alone. Running
  // statistics are no parameters: they move until eval().
  void freeze(bool on = true);

  // Prepares the module for many forward passes without a graph over fixed weights, or undoes that. It keeps the
  // weights that parametrisations compute (nn/parameter.h) and, from the first product on, packed copies
  // (core/packing.h). The copies need the memory of the weights once more, or twice more if weights are parametrised.
  // In mixed precision it keeps the rounded weights, and packs them if the CPU has products of bf16. Outputs keep their
  // bits. Writes through a tensor are seen (assignment, copy_into, an optimizer, a new mutable_data()): the weight is
  // then mapped, rounded and packed in every pass, and its old copies stay until the next call of prepare_inference().
  // Writes through a pointer that was taken before the call are not seen: outputs follow the old weights. Call
  // prepare_inference() again after such writes.
  void prepare_inference(bool on = true);

  // Moves or converts every parameter and buffer in place: handles that others hold (an optimizer's) go on to refer to
  // it. Gradients are dropped.
  void to(Device device);
  void to(DType dtype);

  // Finds the parameter with this path; null if there is none.
  Parameter* find_parameter(const std::string& path);

  // Adds a hook (nn/hooks.h) that runs after the hooks before it. clone() does not copy hooks. A module with backward
  // hooks must outlive the backward. Throws if the hook is empty.
  //
  // Hooks run in operator()(x), and in the other operators of norms (input: the sum that is normalized), attention and
  // Transformer blocks (input and output: the residual stream). A fused op that computes with the weight of a layer,
  // such as linear_cross_entropy() with the head's, does not call the layer.
  ModuleHookHandle on_forward(ForwardHook hook);
  ModuleHookHandle on_backward(BackwardHook hook);
  bool has_hooks() const { return hooks_ && !(hooks_->forward.empty() && hooks_->backward.empty()); }

  // A change to the whole module after its construction, for example parametrisations of many of its layers: clone()
  // repeats it on a copy. It replaces the change before.
  void redo(std::function<void(Module& copy)> done) { redo_ = std::move(done); }
  const std::function<void(Module&)>& redone() const { return redo_; }

  // Marks rows of a registered parameter that the loss does not depend on.
  void mark_blind(const std::string& parameter, int64_t begin, int64_t end);

  const std::string& name() const { return name_; }
  // This module and all below it, parents first, with their paths from here; its own is "" (PyTorch's named_modules()).
  std::vector<std::pair<std::string, Module*>> named_modules();
  std::vector<std::pair<std::string, const Module*>> named_modules() const;
  const CheckedVector<std::unique_ptr<Module>>& children() const { return children_; }

  // Replaces the child `name` by `child`, for example to train another head:
  //   net.replace("head", nn::Linear(64, 5));
  // References to the old child refer to the new one, which takes over its dtype, its device and whether it trains. The
  // old parameters are gone: make the optimizer after this. Parameters that were tied to an old parameter become tied
  // to the new parameter of the same name. Throws, and changes nothing, if there is no such child; if the new child is
  // of another class or has no parameter of a tied one's name and shape; if another module of the model borrowed the
  // old child (a tied head borrows its table); or if the module is part of a model that has something to redo().
  template <class M> M& replace(const std::string& name, M&& child) {
    if constexpr (is_given<M>()) {
      M& place = static_cast<M&>(replaceable(name, child));
      std::destroy_at(&place);
      std::construct_at(&place, std::move(child));
      settle(name, place);
      return place;
    } else {
      return child;
    }
  }

 protected:
  // The computation that operator() runs: call operator().
  virtual Tensor forward(const Tensor& x);
  // compute(x) with the hooks of this module, for an operator() with more arguments than x.
  template <class F> Tensor with_hooks(const Tensor& x, F&& compute) const {
    return has_hooks() ? hooks_->run(*this, x, compute) : compute(x);
  }
  const ModuleHooks* hooks() const { return hooks_.get(); }  // null if none was ever added

  // Registers a child or a parameter under a name without dots, not used before. The parameter's tensor becomes a leaf.
  // A child with a name of its own is given as std::move(child) or nn::clone(child).
  template <class M> M& add(const std::string& name, M&& child) {
    if constexpr (is_given<M>())
      return add(name, std::make_unique<M>(std::move(child)));
    else
      return child;
  }
  template <class M> M& add(const std::string& name, std::unique_ptr<M> child) {
    M& reference = *child;
    adopt(name, std::move(child));
    return reference;
  }
  // An undefined value makes an absent parameter, such as the bias of a layer without bias: it is in no list and
  // refuses assignments.
  Parameter& add_parameter(const std::string& name, const Tensor& value);
  // Adds state that no optimizer trains, such as running statistics. A buffer is saved, loaded, moved and converted
  // with the parameters, and takes no gradient. A tensor of the same shape, dtype and device can be assigned.
  Tensor& add_buffer(const std::string& name, const Tensor& value);
  // Returns `module` after noting that this module runs it although another module owns and trains it. Stores its
  // address: `module` must outlive this module, and replace() refuses to replace it.
  template <class M> M& borrow(M& module) {
    borrowed_.push_back(&module);
    return module;
  }
  // Adds a parameter that shares the tensor of `owner`, a parameter that another module owns and trains. Its
  // parametrisation is its own. This module alone has no such parameter. In a model with the owner, `name` is an alias
  // of the owner's.
  Parameter& borrow_parameter(const std::string& name, const Parameter& owner);

 private:
  friend class ModuleScope;
  friend void copy_state(Module& copy, const Module& module);
  friend void share_state(Module& twin, const Module& module);
  enum class State { parameters, all };
  struct Registered {
    std::string name;
    Parameter tensor;
    bool is_borrowed = false;
    int64_t blind_begin = 0, blind_end = 0;
  };
  Registered& enter(std::vector<std::unique_ptr<Registered>>& list, const std::string& name, const Tensor& value);
  // Throws, naming the path, if a tensor was assigned to a parameter or buffer that cannot be one. Looks at this
  // module, not at its children.
  void check_assigned() const;
  static void check_parameter(const std::string& path, const Registered& p);
  static void check_buffer(const std::string& path, const Registered& b);
  Registered* find_entry(const std::string& path, State which);
  void tie_like(const Module& module);
  static void tie_to(Module& instead, const Module& old, const Module& root);
  void settle_buffers();
  virtual void prepare_weights(bool) {}  // of this module, not of its children
  // Whether an argument M&& is a module that its owner gives away. If not, the one error of the call says what to
  // write.
  template <class M> static constexpr bool is_given() {
    constexpr bool module = std::is_base_of_v<Module, std::remove_cvref_t<M>>;
    constexpr bool given = std::is_same_v<M, std::remove_cvref_t<M>>;
    static_assert(module,
                  "isonorm: the argument is not an nn::Module; write nn::Relu() for relu, or a struct with forward()");
    static_assert(given || !module,
                  "isonorm: a module that has a name stays where it is; give std::move(m), a copy by nn::clone(m), or "
                  "the same parameters by nn::shared(m)");
    return module && given;
  }
  void adopt(const std::string& name, std::unique_ptr<Module> child);
  // The child with this name, ready to make room for `instead`, and `instead` ready to take its place.
  Module& replaceable(const std::string& name, Module& instead);
  void settle(const std::string& name, Module& child);
  void redo_on(Module& copy) const;  // what redo() was given, here or in children
  bool trains() const;               // whether a parameter, of a child too, takes a gradient
  std::vector<NamedParameter> collect(State which) const;
  template <class F> void each_entry(const Module& root, State which, F&& f) const;
  template <class F> void each_tensor(State which, F&& f) const;
  std::string path_of(const Module& module, const Registered& entry) const;
  void check_new(const std::string& name) const;

  std::string name_;
  bool training_ = true;
  std::vector<std::unique_ptr<Registered>> parameters_, buffers_;  // on the heap: references outlive a move
  CheckedVector<std::unique_ptr<Module>> children_;
  std::vector<const Module*> borrowed_;
  const Module* parent_ = nullptr;
  std::function<void(Module&)> redo_;
  std::shared_ptr<ModuleHooks> hooks_;
};

// Throws if a parameter is only a part of the model's (Parameter::hold_part), which `what` would take for the whole.
void check_whole(const Module& module, const std::string& what);

// Makes a module that was built like `module` its copy: the change of redo(), values, dtype, device, frozen parameters
// and the training flag. Throws, naming the parameter, if `module` has a parametrisation that `copy` lacks.
void copy_state(Module& copy, const Module& module);

// Ties all parameters and buffers of a module that was built like `module` to that module's.
void share_state(Module& twin, const Module& module);

// Copies the tensors, to keep a state_dict() while training continues.
//   const TensorMap best = nn::clone(net.state_dict());
TensorMap clone(const TensorMap& tensors);

// True if a class says how a module like a given one is constructed: by a member function `M rebuild() const`, by a
// member `options` that the constructor takes, or by a constructor without arguments.
template <class M>
concept Rebuildable = requires(const M& m) {
  { m.rebuild() } -> std::same_as<M>;
}
|| requires(const M& m) { M(m.options); }
|| std::default_initializable<M>;

// Constructs a module like `module`, with initial values: M(arguments...), or without arguments as the class says
// (Rebuildable).
template <class M, class... Arguments> M rebuild(const M& module, Arguments&&... arguments) {
  if constexpr (sizeof...(Arguments) > 0) {
    return M(std::forward<Arguments>(arguments)...);
  } else if constexpr (requires {
                         { module.rebuild() } -> std::same_as<M>;
                       }) {
    return module.rebuild();
  } else if constexpr (requires { M(module.options); }) {
    return M(module.options);
  } else if constexpr (std::default_initializable<M>) {
    return M();
  } else {
    static_assert(Rebuildable<M>,
                  "isonorm: the class's constructor takes arguments; give them, nn::clone(m, 3, 4), or keep them in a "
                  "member `options`, or write a member function `M rebuild() const`");
  }
}

// A second module like `module` (rebuild()) with its values and tensors of its own, on its device. Frozen parameters
// are frozen in the copy, too. Layers of this library need no arguments, alone or in containers. No initial values are
// drawn (SkipInit), and the default generator keeps its state. Throws if a parametrisation was added to the finished
// module: clone first, then parametrize the copy.
template <class M, class... Arguments> M clone(const M& module, Arguments&&... arguments) {
  const DrawsFrom back_afterwards(default_generator());
  const SkipInit skip;
  M copy = rebuild(module, std::forward<Arguments>(arguments)...);
  copy_state(copy, module);
  return copy;
}

// A second module like `module` (rebuild()) that has its parameters and buffers, for two models with a common part:
//   nn::Sequential actor(nn::shared(trunk), nn::Linear(64, 4)), critic(nn::shared(trunk), nn::Linear(64, 1));
// Both train the same tensors: they are tied (Parameter::operator=). In a module that has both, the tensors are listed,
// saved and counted once, under the first name, and clone() and checkpoints keep that. train() and eval() set the mode
// of a single module. Throws if `module` or a child has a parametrisation or is a rank's part: share before that. Draws
// no initial values, as clone().
template <class M, class... Arguments> M shared(const M& module, Arguments&&... arguments) {
  const DrawsFrom back_afterwards(default_generator());
  const SkipInit skip;
  M twin = rebuild(module, std::forward<Arguments>(arguments)...);
  share_state(twin, module);
  return twin;
}

}  // namespace isonorm::nn

// A NamedParameter binds to two names: its name and its tensor.
template <> struct std::tuple_size<isonorm::nn::NamedParameter> : std::integral_constant<size_t, 2> {};
template <size_t I> struct std::tuple_element<I, isonorm::nn::NamedParameter> {
  using type = std::conditional_t<I == 0, const std::string, const isonorm::Tensor>;
};
