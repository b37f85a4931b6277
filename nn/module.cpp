#include "nn/module.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/memory/bytes.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "nn/evaluation_mode.h"
#include "nn/module_scope.h"
#include "nn/print.h"

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
      redo_(std::move(other.redo_)) {
  for (const auto& c : children_) c->parent_ = this;
}

Tensor Module::operator()(const Tensor& x) {
  const ModuleScope scope(*this);
  return forward(x);
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
            "', which it borrowed; build the model anew");
    take_after(instead, old);
    instead.train(old.training_);
    return *c;
  }
  check(false, "replace: there is no child '", name, "'; there are ", names.empty() ? "none" : names.str());
  return instead;
}

Parameter& Module::add_parameter(const std::string& name, const Tensor& value) {
  check_new(name);
  auto p = std::make_unique<Registered>(Registered{name, Parameter(value)});
  require_grad(p->tensor);
  parameters_.push_back(std::move(p));
  return parameters_.back()->tensor;
}

Tensor& Module::add_buffer(const std::string& name, const Tensor& value) {
  check_new(name);
  buffers_.push_back(std::make_unique<Registered>(Registered{name, Parameter(detach(value))}));
  return buffers_.back()->tensor;
}

void Module::mark_blind(const std::string& parameter, int64_t begin, int64_t end) {
  for (const auto& p : parameters_)
    if (p->name == parameter) p->blind_begin = begin, p->blind_end = end;
}

// f(path, entry) for all names, those of tied tensors included.
template <class F> void Module::each_entry(const std::string& prefix, State which, F&& f) const {
  for (const auto& p : parameters_) f(prefix + p->name, *p);
  if (which == State::all)
    for (const auto& b : buffers_) f(prefix + b->name, *b);
  for (const auto& c : children_) c->each_entry(prefix + c->name_ + ".", which, f);
}

std::vector<NamedParameter> Module::collect(State which) const {
  std::vector<NamedParameter> out;
  std::unordered_map<const TensorImpl*, size_t> places;
  each_entry("", which, [&](std::string path, const Registered& p) {
    const auto [place, is_new] = places.try_emplace(&p.tensor.impl(), out.size());
    if (!is_new) {
      NamedParameter& first = out[place->second];
      first.aliases.push_back(std::move(path));
      first.blind_begin = std::max(first.blind_begin, p.blind_begin);  // blind for all that read it
      first.blind_end = std::max(first.blind_begin, std::min(first.blind_end, p.blind_end));
      return;
    }
    out.push_back({.name = std::move(path),
                   .tensor = p.tensor,
                   .blind_begin = p.blind_begin,
                   .blind_end = p.blind_end,
                   .parametrisation = p.tensor.parametrisation(),
                   .is_part = p.tensor.holds_part()});
  });
  return out;
}

Parameter* Module::find_parameter(const std::string& path) {
  const size_t dot = path.find('.');
  if (dot == path.npos) {
    for (const auto& p : parameters_)
      if (p->name == path) return &p->tensor;
    return nullptr;
  }
  for (const auto& c : children_)
    if (path.compare(0, dot, c->name_) == 0) return c->find_parameter(path.substr(dot + 1));
  return nullptr;
}

std::vector<NamedParameter> Module::named_parameters() const { return collect(State::parameters); }

std::vector<NamedParameter> Module::named_state() const { return collect(State::all); }

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (const NamedParameter& p : named_parameters()) out.push_back(p.tensor);
  return out;
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

// Which of the given tensors is for a parameter: that under the first of its names that is given. Null if none is.
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
      faults.add("mis-shaped  ", p.name, ": expected ", p.tensor.shape(), ", given ", g->shape());
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
  check(faults.empty(), "load_state_dict: the tensors do not fit this module:\n  ", faults);
  check(options.strict || found.unexpected.size() < state.size(), "load_state_dict: none of the ", state.size(),
        " tensors has a name of this module",
        state.empty() || mine.empty() ? "" : text(": ", state.begin()->first, " is the first, here ", mine[0].name));
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
template <class M> void list(M& module, const std::string& path, std::vector<std::pair<std::string, M*>>& out) {
  out.emplace_back(path, &module);
  for (const auto& c : module.children()) list<M>(*c, path.empty() ? c->name() : text(path, '.', c->name()), out);
}
}  // namespace

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> out;
  list(*this, "", out);
  return out;
}

std::vector<std::pair<std::string, const Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, const Module*>> out;
  list(*this, "", out);
  return out;
}

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

void Module::to(Device device) {
  for (const NamedParameter& named : named_state()) {
    const Tensor& p = named.tensor;
    if (p.device() == device) continue;
    Tensor moved = empty(p.shape(), {p.dtype(), device});
    copy_into(moved, p);
    replace_tensor(p, moved);
  }
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
  module.redo_on(copy);
  take_after(copy, module);
  copy.train(module.training_);
  copy.load_state_dict(module.state_dict());
  const std::vector<Tensor> from = module.parameters(), to = copy.parameters();
  for (size_t i = 0; i < from.size(); ++i) require_grad(to[i], requires_grad(from[i]));
}

void check_whole(const Module& module, const std::string& what) {
  for (const NamedParameter& p : module.named_parameters())
    check(!p.is_part, what, ": of '", p.name,
          "' this rank has a part alone; ShardedParameters and TensorParallel make the whole: whole()");
}

TensorMap clone(const TensorMap& tensors) { return detached::clone(tensors); }

}  // namespace isonorm::nn
