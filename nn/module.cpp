#include "nn/module.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/memory/bytes.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "nn/modes.h"
#include "nn/module_scope.h"
#include "nn/print.h"
#include "nn/torch_state.h"

namespace isonorm::nn {

Module::Module() = default;
Module::~Module() = default;

Module::Module(Module&& other) noexcept
    : name_(std::move(other.name_)),
      training_(other.training_),
      parameters_(std::move(other.parameters_)),
      buffers_(std::move(other.buffers_)),
      children_(std::move(other.children_)),
      borrowed_(std::move(other.borrowed_)),
      redo_(std::move(other.redo_)),
      hooks_(std::move(other.hooks_)) {
  for (const auto& c : children_) c->parent_ = this;
}

Tensor Module::operator()(const Tensor& x) {
  const ModuleScope scope(*this);
  return with_hooks(x, [this](const Tensor& input) { return forward(input); });
}

Tensor Module::forward(const Tensor&) {
  check(false, kind_of(*this),
        " has no `Tensor forward(const Tensor& x) override`; write it, or call the operator() that the class has");
  return {};
}

void Module::check_new(const std::string& name) const {
  check(!name.empty() && name.find('.') == std::string::npos, "add: the name '", name, "' is empty or has a dot");
  const auto has = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& p) { return p->name == name; });
  };
  const bool used = has(parameters_) || has(buffers_) ||
                    std::any_of(children_.begin(), children_.end(), [&](const auto& c) { return c->name_ == name; });
  check(!used, "add: the name '", name, "' is taken");
}

void Module::adopt(const std::string& name, std::unique_ptr<Module> child) {
  check_new(name);
  settle(name, *child);
  children_.push_back(std::move(child));
}

namespace {
// Gives `copy` the dtype and the device of `module`.
void take_after(Module& copy, const Module& module) {
  const std::vector<Tensor> parameters = module.parameters();
  if (!parameters.empty()) {
    copy.to(parameters.front().dtype());
    copy.to(parameters.front().device());
  }
}
}  // namespace

void Module::settle(const std::string& name, Module& child) {
  child.name_ = name;
  child.parent_ = this;
}

Module& Module::replaceable(const std::string& name, Module& instead) {
  ShortList names;
  for (const auto& c : children_) {
    names.add(c->name_);
    if (c->name_ != name) continue;
    const Module& old = *c;
    check(typeid(old) == typeid(instead), "replace: '", name, "' is a ", kind_of(old), ", the new one a ",
          kind_of(instead), "; the members that refer to it need the same class (a Sequential can hold any layers)");
    const Module* root = this;
    for (const Module* m = this; m; root = m, m = m->parent_)
      check(!m->redo_, "replace: '", name,
            "' is part of a model that was parametrized as a whole; replace it before that");
    for (const auto& [path, m] : root->named_modules())
      check(std::ranges::find(m->borrowed_, &old) == m->borrowed_.end(), "replace: '", path, "' computes with '", name,
            "', which it borrowed; build a new model");
    take_after(instead, old);
    instead.train(old.training_);
    tie_to(instead, old, *root);
    return *c;
  }
  check(false, "replace: there is no child '", name, "'; there are ", names.empty() ? "none" : names.str());
  return instead;
}

// Parameters outside of `old` that are tied to parameters of `old` become tied to their namesakes in `instead`.
void Module::tie_to(Module& instead, const Module& old, const Module& root) {
  std::unordered_map<const TensorImpl*, std::string> inside;
  std::unordered_set<const Registered*> own;
  old.each_entry(old, State::parameters, [&](const Module& module, const Registered& p) {
    own.insert(&p);
    if (!p.is_borrowed) inside.try_emplace(&p.tensor.impl(), old.path_of(module, p));
  });
  std::vector<std::pair<Parameter*, const Parameter*>> ties;
  root.each_entry(root, State::parameters, [&](const Module& module, const Registered& p) {
    const auto tied = inside.find(&p.tensor.impl());
    if (own.contains(&p) || tied == inside.end()) return;
    const std::string path = root.path_of(module, p);
    const Parameter* now = instead.find_parameter(tied->second);
    check(now && fits(p.tensor, *now), "replace: '", path, "' is tied to '", tied->second, "' ", p.tensor.shape(),
          " of the old child, and the new one has no such parameter; assign a leaf of its own to it first");
    check(p.tensor.parametrisations().empty(), "replace: '", path, "' is tied to '", tied->second,
          "' of the old child, and has a parametrisation");
    ties.emplace_back(const_cast<Parameter*>(&p.tensor), now);
  });
  for (const auto& [outside, now] : ties) *outside = *now;
}

Module::Registered& Module::enter(std::vector<std::unique_ptr<Registered>>& list, const std::string& name,
                                  const Tensor& value) {
  check_new(name);
  return *list.emplace_back(new Registered{name, Parameter(value)});
}

Parameter& Module::add_parameter(const std::string& name, const Tensor& value) {
  if (value.defined()) own_leaf(require_grad(value));
  return enter(parameters_, name, value).tensor;
}

Tensor& Module::add_buffer(const std::string& name, const Tensor& value) {
  return enter(buffers_, name, detach(value)).tensor;
}

Parameter& Module::borrow_parameter(const std::string& name, const Parameter& owner) {
  if (owner.defined()) own_leaf(owner);
  Registered& p = enter(parameters_, name, owner.stored());
  p.is_borrowed = true;
  return p.tensor;
}

namespace {
// Says why a tensor cannot take the place of `own`.
std::string misfit(const Tensor& own, const Tensor& now, bool is_parameter) {
  const auto described = [](const Tensor& t) { return text(t.shape(), ' ', t.dtype(), " on ", t.device()); };
  if (!own.defined()) return "was made without a tensor, and was assigned one";
  if (!now.defined()) return "was assigned an undefined tensor";
  if (!fits(own, now)) return text("was assigned ", described(now), ", expected ", described(own));
  const autograd::Node* node = now.impl().node.get();
  if (node && !node->is_leaf())
    return text("was assigned the result of '", node->name, "', expected a ", is_parameter ? "leaf" : "constant");
  if (!is_parameter) return "was assigned a tensor that takes a gradient, expected a constant";
  if (!node) return "was assigned a tensor without require_grad(), expected a leaf";
  return "was assigned as a Tensor&, expected the Parameter itself (layer.weight = leaf)";
}
}  // namespace

// Both look at an entry that is not intact: something was assigned to it.
void Module::check_parameter(const std::string& path, const Registered& p) {
  check(false, "parameter '", path, "' ", misfit(p.tensor.own(), p.tensor, true),
        "; copy_into(parameter, values) writes values");
}

void Module::check_buffer(const std::string& path, const Registered& b) {
  check(fits(b.tensor.own(), b.tensor) && !b.tensor.impl().node, "buffer '", path, "' ",
        misfit(b.tensor.own(), b.tensor, false), "; copy_into(buffer, values) writes values");
}

void Module::check_assigned() const {
  for (const auto& p : parameters_)
    if (!p->tensor.is_intact()) check_parameter(p->name, *p);
  for (const auto& b : buffers_)
    if (!b->tensor.is_intact()) check_buffer(b->name, *b);
}

void Module::mark_blind(const std::string& parameter, int64_t begin, int64_t end) {
  for (const auto& p : parameters_)
    if (p->name == parameter) p->blind_begin = begin, p->blind_end = end;
}

// f(module, entry) for all entries of this module and of the modules below it, including every name of a tied tensor.
template <class F> void Module::each_entry(const Module& root, State which, F&& f) const {
  for (const auto& p : parameters_) {
    if (!p->tensor.is_intact()) check_parameter(root.path_of(*this, *p), *p);
    if (p->tensor.defined()) f(*this, *p);
  }
  for (const auto& b : buffers_) {
    if (!b->tensor.is_intact()) check_buffer(root.path_of(*this, *b), *b);
    if (which == State::all) f(*this, *b);
  }
  for (const auto& c : children_) c->each_entry(root, which, f);
}

// f(number, module, entry) for the same entries. A tied tensor has the same number under all its names.
template <class F> void Module::each_tensor(State which, F&& f) const {
  std::unordered_map<const TensorImpl*, size_t> numbers;  // of tensors that may have several names
  size_t count = 0;
  each_entry(*this, which, [&](const Module& module, const Registered& p) {
    const TensorImpl* tensor = &p.tensor.impl();
    size_t number = count;
    if (const autograd::Node* leaf = tensor->node.get(); !leaf || leaf->tied) {
      if (p.is_borrowed && !numbers.contains(tensor)) return;
      number = numbers.try_emplace(tensor, count).first->second;
    }
    f(number, module, p);
    if (number == count) ++count;
  });
}

// The path of an entry of `module`, this module or one below it.
std::string Module::path_of(const Module& module, const Registered& entry) const {
  std::string path = entry.name;
  for (const Module* m = &module; m != this; m = m->parent_) path = m->name_ + '.' + path;
  return path;
}

std::vector<NamedParameter> Module::collect(State which) const {
  std::vector<NamedParameter> out;
  each_tensor(which, [&](size_t number, const Module& module, const Registered& p) {
    if (number < out.size()) {
      NamedParameter& first = out[number];
      first.aliases.push_back(path_of(module, p));
      first.blind_begin = std::max(first.blind_begin, p.blind_begin);  // blind for all that read it
      first.blind_end = std::max(first.blind_begin, std::min(first.blind_end, p.blind_end));
      return;
    }
    out.push_back({.name = path_of(module, p),
                   .tensor = p.tensor,
                   .blind_begin = p.blind_begin,
                   .blind_end = p.blind_end,
                   .parametrisations = p.tensor.parametrisations(),
                   .is_part = p.tensor.holds_part()});
  });
  return out;
}

Module::Registered* Module::find_entry(const std::string& path, State which) {
  const size_t dot = path.find('.');
  if (dot == path.npos) {
    for (const auto& p : parameters_)
      if (p->name == path) return p.get();
    if (which == State::all)
      for (const auto& b : buffers_)
        if (b->name == path) return b.get();
    return nullptr;
  }
  for (const auto& c : children_)
    if (path.compare(0, dot, c->name_) == 0) return c->find_entry(path.substr(dot + 1), which);
  return nullptr;
}

Parameter* Module::find_parameter(const std::string& path) {
  Registered* p = find_entry(path, State::parameters);
  return p && p->tensor.defined() ? &p->tensor : nullptr;
}

// Makes the names tied that are tied in `module`, and no others.
void Module::tie_like(const Module& module) {
  std::unordered_map<const TensorImpl*, Registered*>
      firsts;                                   // by tensor of `module`: this one's entry of the first name
  std::unordered_set<const TensorImpl*> taken;  // tensors of this one
  module.each_entry(module, State::all, [&](const Module& holder, const Registered& theirs) {
    Registered* mine = find_entry(module.path_of(holder, theirs), State::all);
    if (!mine || !mine->tensor.defined() || theirs.is_borrowed) return;
    const auto [first, is_new] = firsts.try_emplace(&theirs.tensor.impl(), mine);
    const Tensor& tied = first->second->tensor;
    if (!is_new && mine->tensor.handle() != tied.handle()) mine->tensor = first->second->tensor;
    if (!taken.insert(&mine->tensor.impl()).second && is_new) {
      const Tensor apart = detached::clone(mine->tensor);
      mine->tensor = mine->tensor.impl().node ? require_grad(apart) : apart;
      taken.insert(&apart.impl());
    }
  });
}

std::vector<NamedParameter> Module::named_parameters() const { return collect(State::parameters); }

std::vector<NamedParameter> Module::named_state() const { return collect(State::all); }

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  each_tensor(State::parameters, [&](size_t number, const Module&, const Registered& p) {
    if (number == out.size()) out.push_back(p.tensor);
  });
  return out;
}

void Module::zero_grad() {
  for (const Tensor& p : parameters()) set_grad(p, {});
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

TensorMap Module::state_dict() const {
  check_whole(*this, "state_dict");
  TensorMap map;
  for (const NamedParameter& p : named_state()) map.add(p.name, p.tensor);
  return map;
}

namespace {
bool same_bits(const Tensor& x, const Tensor& y) {
  if (x.dtype() != y.dtype() || x.shape() != y.shape()) return false;
  const auto on_cpu = [](const Tensor& t) {
    Tensor copy = empty(t.shape(), {t.dtype()});
    copy_into(copy, t);
    return copy;
  };
  const Tensor a = on_cpu(x), b = on_cpu(y);
  return std::memcmp(bytes_of(a), bytes_of(b), static_cast<size_t>(byte_size(a))) == 0;
}

// The given tensor for a parameter: under its first name that `state` has. Null if it has none.
const Tensor* given_for(const NamedParameter& p, const TensorMap& state) {
  const Tensor* given = state.find(p.name);
  for (size_t i = 0; !given && i < p.aliases.size(); ++i) given = state.find(p.aliases[i]);
  return given;
}
}  // namespace

LoadedState Module::load_state_dict(const TensorMap& state, LoadOptions options) {
  const std::vector<NamedParameter> mine = named_state();
  std::vector<const Tensor*> given;  // for each of mine; null: none
  std::set<std::string_view> names;
  LoadedState found;
  ShortList faults("\n  ");
  for (const NamedParameter& p : mine) {
    names.insert(p.name), names.insert(p.aliases.begin(), p.aliases.end());
    const Tensor* g = given.emplace_back(given_for(p, state));
    if (!g) {
      found.missing.push_back(p.name);
      if (options.strict) faults.add("missing     ", p.name, ' ', p.tensor.shape());
    } else if (g->shape() != p.tensor.shape()) {
      found.mismatched.push_back(p.name);
      if (!options.skip_mismatched)
        faults.add("mis-shaped  ", p.name, ": expected ", p.tensor.shape(), ", given ", g->shape());
      given.back() = nullptr;
    }
    for (const std::string& alias : p.aliases)
      if (const Tensor* again = state.find(alias); again && again != g && !same_bits(*again, *g))
        faults.add("tied        ", alias, " is the tensor ", p.name, ", given other values");
  }
  for (const auto& [name, tensor] : state) {
    if (names.contains(name)) continue;
    found.unexpected.push_back(name);
    if (options.strict) faults.add("unexpected  ", name, ' ', tensor.shape());
  }
  if (!faults.empty())
    check(false, "load_state_dict: the tensors do not fit this module", remedy_for(*this, state), ":\n  ", faults);
  if (!options.strict && found.unexpected.size() == state.size())
    check(false, "load_state_dict: none of the ", state.size(), " tensors has a name of this module",
          state.empty() || mine.empty() ? "" : text(": ", state.begin()->first, " is the first, here ", mine[0].name),
          remedy_for(*this, state));
  check(found.mismatched.empty() || std::any_of(given.begin(), given.end(), [](const Tensor* g) { return g; }),
        "load_state_dict: no tensor has the shape that it has in this module: ", found.mismatched.size(),
        " have another");
  if (state.is_torch())
    for (const std::string& name : convolution_weights(*this))
      check(!state.find(name), "load_state_dict: the tensors are PyTorch's, where ", name,
            " has another layout, though its shape fits; nn::from_torch(module, tensors) converts it");
  bool own = !state.empty();
  for (size_t i = 0; i < mine.size(); ++i) {
    if (!given[i]) continue;
    const NamedParameter& p = mine[i];
    const Tensor& g = *given[i];
    check(g.dtype() == p.tensor.dtype(), "load_state_dict: ", p.name, " is ", g.dtype(), ", this module's is ",
          p.tensor.dtype(), "; convert one of them first: module.to(DType::", g.dtype(), "), or to() of the tensors");
    own = own && g.impl().storage == p.tensor.impl().storage;
  }
  check(!own,
        "load_state_dict: these are this module's own tensors, which went on training; keep values as "
        "clone(state_dict())");
  for (size_t i = 0; i < mine.size(); ++i)
    if (given[i]) copy_into(mine[i].tensor, *given[i]);
  return found;
}

namespace {
template <class M> using Paths = std::vector<std::pair<std::string, M*>>;
template <class M> Paths<M> list(M& module, const std::string& path = "", Paths<M> out = {}) {
  out.emplace_back(path, &module);
  for (const auto& c : module.children())
    out = list<M>(*c, path.empty() ? c->name() : text(path, '.', c->name()), std::move(out));
  return out;
}
}  // namespace

std::vector<std::pair<std::string, Module*>> Module::named_modules() { return list(*this); }
std::vector<std::pair<std::string, const Module*>> Module::named_modules() const { return list(*this); }

void Module::freeze(bool on) {
  for (const Tensor& p : parameters()) require_grad(p, !on);
}

bool Module::trains() const {
  return std::any_of(parameters_.begin(), parameters_.end(), [](const auto& p) { return requires_grad(p->tensor); }) ||
         std::any_of(children_.begin(), children_.end(), [](const auto& c) { return c->trains(); });
}

void Module::train(bool on) {
  for (const auto& [_, m] : named_modules()) m->training_ = on;
}

bool Module::training() const { return training_ && !EvaluationMode::is_on(); }

void Module::prepare_inference(bool on) {
  const NoGrad no_grad;
  for (const auto& [_, m] : named_modules()) m->prepare_weights(on);
}

// Tensors that were assigned to buffers are theirs from now on, in whatever dtype and on whatever device.
void Module::settle_buffers() {
  for (const auto& [_, m] : named_modules())
    for (const auto& b : m->buffers_) b->tensor.settle();
}

void Module::to(Device device) {
  for (const NamedParameter& named : named_state()) {
    const Tensor& p = named.tensor;
    if (p.device() == device) continue;
    Tensor moved = empty(p.shape(), {p.dtype(), device});
    copy_into(moved, p);
    replace_tensor(p, moved);
  }
  settle_buffers();
}

void Module::to(DType dtype) {
  check(is_floating(dtype), "to: dtype is ", dtype, ", expected f32, f64 or bf16");
  for (const NamedParameter& named : named_state()) {
    const Tensor& p = named.tensor;
    if (p.dtype() == dtype) continue;
    Tensor converted = empty(p.shape(), {dtype, p.device()});
    copy_into(converted, p);
    replace_tensor(p, converted);
  }
  settle_buffers();
}

void Module::redo_on(Module& copy) const {
  if (redo_) redo_(copy);
  for (int64_t i = 0; i < std::min(std::ssize(children_), std::ssize(copy.children_)); ++i)
    children_[i]->redo_on(*copy.children_[i]);
}

void copy_state(Module& copy, const Module& module) {
  for (const Module* m = module.parent_; m; m = m->parent_)
    check(!m->redo_, "clone: '", module.name(), "' is part of a model that was parametrized as a whole; clone that");
  check_whole(module, "clone");
  copy.tie_like(module);
  module.redo_on(copy);
  module.each_entry(module, Module::State::all, [&](const Module& holder, const Module::Registered& theirs) {
    const std::string path = module.path_of(holder, theirs);
    const Module::Registered* mine = copy.find_entry(path, Module::State::all);
    check(!mine || mine->tensor.parametrisations().size() == theirs.tensor.parametrisations().size(), "clone: '", path,
          "' has a parametrisation that the module was not constructed with; clone first, then parametrize the copy");
  });
  take_after(copy, module);
  copy.train(module.training_);
  copy.load_state_dict(module.state_dict());
  const std::vector<Tensor> from = module.parameters(), to = copy.parameters();
  for (size_t i = 0; i < from.size(); ++i) require_grad(to[i], requires_grad(from[i]));
}

void share_state(Module& twin, const Module& module) {
  check_whole(module, "shared");
  module.each_entry(module, Module::State::all, [&](const Module& holder, const Module::Registered& theirs) {
    check(theirs.tensor.parametrisations().empty(), "shared: '", module.path_of(holder, theirs),
          "' has a parametrisation; share the module before");
  });
  take_after(twin, module);
  twin.train(module.training_);
  module.each_entry(module, Module::State::all, [&](const Module& holder, const Module::Registered& theirs) {
    const std::string path = module.path_of(holder, theirs);
    Module::Registered* mine = twin.find_entry(path, Module::State::all);
    check(mine != nullptr, "shared: the second module has no '", path, "'; give the arguments of its constructor");
    if (theirs.tensor.defined()) mine->tensor = theirs.tensor;
  });
  twin.settle_buffers();
}

void check_whole(const Module& module, const std::string& what) {
  for (const NamedParameter& p : module.named_parameters())
    check(!p.is_part, what, ": this rank has only a part of '", p.name,
          "'; ShardedParameters and TensorParallel make the whole: whole()");
}

TensorMap clone(const TensorMap& tensors) { return detached::clone(tensors); }

}  // namespace isonorm::nn
