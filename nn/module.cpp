#include "nn/module.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"

namespace isonorm::nn {

Tensor Module::operator()(const Tensor& x) {
  Scope scope(name_);
  return forward(x);
}

Tensor Module::forward(const Tensor&) {
  check(false, "module '", name_, "': it has no forward of one tensor");
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
  child->name_ = name;
  children_.push_back(std::move(child));
}

Tensor& Module::add_parameter(const std::string& name, const Tensor& value, Role role, int stream_dim) {
  check_new(name);
  auto p = std::make_unique<Parameter>(Parameter{name, value, role, stream_dim});
  require_grad(p->tensor);
  parameters_.push_back(std::move(p));
  return parameters_.back()->tensor;
}

Tensor& Module::add_buffer(const std::string& name, const Tensor& value) {
  check_new(name);
  buffers_.push_back(std::make_unique<Parameter>(Parameter{name, detach(value)}));
  return buffers_.back()->tensor;
}

void Module::mark_blind(const std::string& parameter, int64_t begin, int64_t end) {
  for (const auto& p : parameters_)
    if (p->name == parameter) p->blind_begin = begin, p->blind_end = end;
}

void Module::collect(const std::string& prefix, State which, std::vector<Parameter>& out) const {
  const auto append = [&](const auto& list) {
    for (const auto& p : list) {
      out.push_back(*p);
      out.back().name = prefix + p->name;
    }
  };
  append(parameters_);
  if (which == State::all) append(buffers_);
  for (const auto& c : children_) c->collect(prefix + c->name_ + ".", which, out);
}

std::vector<Parameter> Module::named_parameters() const {
  std::vector<Parameter> out;
  collect("", State::parameters, out);
  return out;
}

std::vector<Parameter> Module::named_state() const {
  std::vector<Parameter> out;
  collect("", State::all, out);
  return out;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (const Parameter& p : named_parameters()) out.push_back(p.tensor);
  return out;
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

TensorMap Module::state_dict() const {
  TensorMap map;
  for (const Parameter& p : named_state()) map.add(p.name, p.tensor);
  return map;
}

void Module::load_state_dict(const TensorMap& state) {
  const std::vector<Parameter> mine = named_state();
  std::string table;
  for (const Parameter& p : mine) {
    const Tensor* given = state.find(p.name);
    if (!given)
      table += "\n  missing     " + p.name + text(' ', p.tensor.shape());
    else if (given->shape() != p.tensor.shape())
      table += "\n  mis-shaped  " + p.name + text(": expected ", p.tensor.shape(), ", given ", given->shape());
  }
  for (const auto& [name, tensor] : state)
    if (std::none_of(mine.begin(), mine.end(), [&, n = &name](const Parameter& p) { return p.name == *n; }))
      table += "\n  unexpected  " + name + text(' ', tensor.shape());
  check(table.empty(), "load_state_dict: the tensors do not fit this module:", table);
  for (const Parameter& p : mine) {
    const DType given = state.find(p.name)->dtype();
    check(given == p.tensor.dtype(), "load_state_dict: ", p.name, " is ", given, ", this module's is ",
          p.tensor.dtype(), "; convert one of them first: module.to(DType::", given, "), or cast() of the tensors");
  }
  for (const Parameter& p : mine) copy_into(p.tensor, *state.find(p.name));
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& c : children_) c->train(on);
}

void Module::prepare_inference(bool on) {
  const NoGrad no_grad;
  prepare_weights(on);
  for (const auto& c : children_) c->prepare_inference(on);
}

namespace {
// Replaces what the handle refers to; everybody who holds it sees the new tensor.
void become(const Tensor& x, const Tensor& value) {
  const bool leaf = x.impl().node != nullptr;
  *x.handle() = *value.handle();
  if (leaf) require_grad(x);
}
}  // namespace

void Module::to(Device device) {
  for (const auto& [_, p] : state_dict()) {
    if (p.device() == device) continue;
    Tensor moved = empty(p.shape(), {p.dtype(), device});
    copy_into(moved, p);
    become(p, moved);
  }
}

void Module::to(DType dtype) {
  check(is_floating(dtype), "to: dtype is ", dtype, ", expected f32, f64 or bf16");
  for (const auto& [_, p] : state_dict()) {
    if (p.dtype() == dtype) continue;
    Tensor converted = empty(p.shape(), {dtype, p.device()});
    copy_into(converted, p);
    become(p, converted);
  }
}

}  // namespace isonorm::nn
