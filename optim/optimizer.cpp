#include "optim/optimizer.h"

#include <cmath>
#include <set>

#include "autograd/engine.h"

namespace isonorm::optim {

Optimizer::Optimizer(const char* name, std::vector<const char*> state_names)
    : name_(name), state_names_(std::move(state_names)) {}

void Optimizer::check_option(bool ok, const char* what, double value, const char* expected) const {
  check(ok, name_, ": ", what, " is ", value, ", expected ", expected);
}

void Optimizer::add_group(const std::vector<Tensor>& parameters, double lr, bool has_state) {
  groups_.push_back({});
  set_lr(groups() - 1, lr);
  groups_.back().has_state = has_state;
  std::set<const TensorImpl*> seen;
  for (const Entry& e : entries_) seen.insert(&e.parameter.impl());
  for (const Tensor& p : parameters) {
    const size_t i = entries_.size();
    check(p.defined(), name_, ": parameter ", i, " is undefined");
    check(requires_grad(p) && p.impl().node->is_leaf(), name_, ": parameter ", i, " of shape ", p.shape(),
          requires_grad(p) ? " is the result of an op, expected a leaf"
                           : " takes no gradient; call require_grad() on it");
    check(p.is_contiguous(), name_, ": parameter ", i, " has shape ", p.shape(), " and strides ", p.strides(),
          ", expected a contiguous one");
    check(seen.insert(&p.impl()).second, name_, ": parameter ", i, " of shape ", p.shape(), " is there twice");
    entries_.push_back({p, groups() - 1});
  }
}

const Optimizer::Group& Optimizer::checked_group(int group) const {
  check(group >= 0 && group < groups(), name_, ": there is no group ", group, " among ", groups());
  return groups_[group];
}

void Optimizer::set_lr(int group, double lr) {
  checked_group(group);
  check_option(lr >= 0 && std::isfinite(lr), "lr", lr, "a finite number from 0");
  groups_[group].lr = lr;
}

void Optimizer::set_lr(double lr) {
  for (int g = 0; g < groups(); ++g) set_lr(g, lr);
}

void Optimizer::zero_grad() {
  for (const Entry& e : entries_) set_gradient(e.parameter, {});
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> result;
  for (const Entry& e : entries_) result.push_back(e.parameter);
  return result;
}

Device Optimizer::device() const {
  const Device first = entries_.empty() ? kCpu : entries_.front().parameter.device();
  for (const Entry& e : entries_)
    check(e.parameter.device() == first, name_, ": parameters lie on ", first, " and on ", e.parameter.device());
  return first;
}

bool Optimizer::begin_step(Entry& e, Tensor& gradient) {
  gradient = isonorm::gradient(e.parameter);
  if (!gradient.defined()) return false;
  if (!gradient.is_contiguous()) {
    Tensor dense = empty_like(gradient);
    copy_into(dense, gradient);
    gradient = std::move(dense);
  }
  if (e.state.empty() && groups_[e.group].has_state)
    for (size_t s = 0; s < state_names_.size(); ++s) {
      e.state.push_back(empty(e.parameter.shape(), {acc_dtype(e.parameter.dtype()), e.parameter.device()}));
      fill(e.state.back(), 0);
    }
  ++e.steps;
  return true;
}

TensorMap Optimizer::state_dict() const {
  TensorMap map;
  for (int g = 0; g < groups(); ++g) map.add(text("group.", g, ".lr"), from_vector<double>({groups_[g].lr}, Dims()));
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    if (e.steps == 0) continue;
    map.add(text(i, ".step"), from_vector<int64_t>({e.steps}, Dims()));
    for (size_t s = 0; s < e.state.size(); ++s) map.add(text(i, '.', state_names_[s]), e.state[s]);
  }
  return map;
}

// What `from` holds for the parameter `e` under names that begin with `prefix`.
Optimizer::Entry Optimizer::loaded(const Entry& e, const std::string& prefix, const TensorMap& from) const {
  Entry result{e.parameter, e.group};
  const Tensor* step = from.find(prefix + "step");
  if (!step) return result;
  check(step->dtype() == DType::i64 && step->numel() == 1 && step->item() >= 0, name_, ": the state '", prefix,
        "step' is ", step->dtype(), ' ', step->shape(), ", expected one i64 from 0");
  result.steps = static_cast<int64_t>(step->item());
  if (result.steps == 0 || !groups_[e.group].has_state) return result;
  for (const char* name : state_names_) {
    const Tensor* t = from.find(prefix + name);
    const TensorOptions options{acc_dtype(e.parameter.dtype()), e.parameter.device()};
    check(t != nullptr, name_, ": the state '", prefix, name, "' is missing");
    check(t->shape() == e.parameter.shape() && t->dtype() == options.dtype, name_, ": the state '", prefix, name,
          "' is ", t->dtype(), ' ', t->shape(), ", expected ", options.dtype, ' ', e.parameter.shape());
    result.state.push_back(empty(t->shape(), options));
    copy_into(result.state.back(), *t);
  }
  return result;
}

void Optimizer::load_state_dict(const TensorMap& state) {
  std::vector<Entry> entries;
  std::set<std::string> known;
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries.push_back(loaded(entries_[i], text(i, '.'), state));
    if (entries.back().steps == 0 && !state.find(text(i, ".step"))) continue;
    known.insert(text(i, ".step"));
    for (size_t s = 0; s < entries.back().state.size(); ++s) known.insert(text(i, '.', state_names_[s]));
  }
  std::vector<double> lr;
  for (int g = 0; g < groups(); ++g) {
    const std::string name = text("group.", g, ".lr");
    const Tensor* t = state.find(name);
    check(t != nullptr, name_, ": the state '", name, "' is missing");
    check(t->numel() == 1, name_, ": the state '", name, "' has shape ", t->shape(), ", expected one number");
    lr.push_back(t->item());
    check_option(lr.back() >= 0 && std::isfinite(lr.back()), name.c_str(), lr.back(), "a finite number from 0");
    known.insert(name);
  }
  for (const auto& [name, t] : state)
    check(known.contains(name), name_, ": the state '", name, "' is unknown to these ", entries_.size(), " parameters");
  entries_ = std::move(entries);
  for (int g = 0; g < groups(); ++g) set_lr(g, lr[g]);
}

}  // namespace isonorm::optim
