#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "core/kernels/optimizer.h"
#include "core/view.h"

namespace isonorm::optim {

Optimizer::Optimizer(const char* name, size_t parameters) : name_(name) {
  check(parameters > 0, name,
        ": it is made of no parameters, nothing would train; a module has only parameters and children that were given "
        "to add()");
}

void Optimizer::check_option(const Condition& c) const {
  check(c.holds, name_, ": ", c.what, " is ", c.value, ", expected ", c.expected);
}

Optimizer::Condition Optimizer::fraction(const char* what, double value) {
  return {value >= 0 && value < 1, what, value, "a number in [0, 1)"};
}

Optimizer::Condition Optimizer::not_negative(const char* what, double value) {
  return {value >= 0 && std::isfinite(value), what, value, "a finite number from 0"};
}

void Optimizer::check_factor(const Tensor& factor) const {
  check(factor.defined() && factor.dtype() == DType::f64 && factor.numel() == 1 && factor.device() == device(), name_,
        ": the gradients' factor is ",
        factor.defined() ? text(factor.dtype(), ' ', factor.shape(), " on ", factor.device()) : "undefined",
        ", expected one f64 on ", device());
}

std::vector<kernels::Update> Optimizer::advance() {
  check(false, name_, ": its steps change by more than numbers of their updates, a device cannot do one again");
  return {};
}

void Optimizer::step_scaled(const Tensor& gradient_scale) {
  check_factor(gradient_scale);
  step(gradient_scale.item());
}

void Optimizer::add_group(const std::vector<Tensor>& parameters, double lr, const std::vector<const char*>& state_names,
                          double initial) {
  add_group(parameters, lr, [&](const Tensor& p) {
    std::vector<StateSpec> specs;
    for (const char* name : state_names) specs.push_back({name, p.shape(), initial});
    return specs;
  });
}

void Optimizer::add_group(const std::vector<Tensor>& parameters, double lr,
                          const std::function<std::vector<StateSpec>(const Tensor&)>& specs_of) {
  check_option(not_negative("lr", lr));
  lr_.push_back(lr);
  factors_.push_back(lr == lr_.front() ? 1 : lr / lr_.front());
  std::set<const TensorImpl*> seen;
  for (const Entry& e : entries_) seen.insert(&e.parameter.impl());
  for (const Tensor& p : parameters) {
    const size_t i = entries_.size();
    check(p.defined(), name_, ": parameter ", i, " is undefined");
    const auto& node = p.impl().node;
    check(node && node->is_leaf(), name_, ": parameter ", i, " of shape ", p.shape(),
          node ? " is the result of an op, expected a leaf" : " takes no gradient; call require_grad() on it");
    check(p.is_contiguous(), name_, ": parameter ", i, " has shape ", p.shape(), " and strides ", p.strides(),
          ", expected a contiguous one");
    if (!seen.insert(&p.impl()).second) {  // models that share a parameter each list it
      const auto same = [&](const Entry& e) { return &e.parameter.impl() == &p.impl(); };
      const int other = std::ranges::find_if(entries_, same)->group;
      check(other == groups() - 1, name_, ": a parameter of shape ", p.shape(), " is in group ", other,
            " and in group ", groups() - 1);
      continue;
    }
    node->owned = true;
    entries_.push_back({p, groups() - 1, specs_of(p)});
  }
}

int Optimizer::checked_group(int group) const {
  check(group >= -groups() && group < groups(), name_, ": there is no group ", group, " among ", groups());
  return group < 0 ? group + groups() : group;
}

void Optimizer::set_lr(int group, double lr) {
  double& rate = lr_[checked_group(group)];
  check_option(not_negative("lr", lr));
  rate = lr;
}

void Optimizer::set_lr(double lr) {
  check_option(not_negative("lr", lr));
  for (int g = 0; g < groups(); ++g)
    check(std::isfinite(lr * factors_[g]), name_, ": lr is ", lr, " for group 0 and ", factors_[g],
          " times as much for group ", g, "; set_lr(group, lr) sets each");
  for (int g = 0; g < groups(); ++g) lr_[g] = lr * factors_[g];
}

void Optimizer::set_weight_decay(int group, double weight_decay) {
  double* const option = tunable(checked_group(group)).weight_decay;
  check(option != nullptr, name_, ": there is no weight decay to set");
  check_option(not_negative("weight_decay", weight_decay));
  *option = weight_decay;
}

void Optimizer::set_momentum(int group, double momentum) {
  double* const option = tunable(checked_group(group)).momentum;
  check(option != nullptr, name_, ": there is no momentum to set");
  check(*option > 0, name_, ": group ", group, " was made without momentum and has no buffer for it");
  check_option({momentum > 0 && momentum < 1, "momentum", momentum, "a number in (0, 1)"});
  *option = momentum;
}

void Optimizer::zero_grad() {
  for (const Entry& e : entries_) set_grad(e.parameter, {});
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
  gradient = e.parameter.grad();
  if (!gradient.defined()) {
    check(e.parameter.handle().use_count() > 1, name_, ": nothing else holds parameter ", &e - entries_.data(),
          " of shape ", e.parameter.shape(),
          ", it can have no gradient; make the optimizer anew after Module::replace()");
    return false;
  }
  check(e.parameter.shape() == e.shape, name_, ": parameter ", &e - entries_.data(), " had shape ", e.shape,
        ", it has ", e.parameter.shape(), "; make the optimizer after that");
  const DType dtype = acc_dtype(e.parameter.dtype());
  for (const Tensor& s : e.state)
    check(s.dtype() == dtype, name_, ": parameter ", &e - entries_.data(), " of shape ", e.shape, " is ",
          e.parameter.dtype(), " now, its state is ", s.dtype(), "; make the optimizer after to(dtype)");
  if (e.state.empty())
    for (const StateSpec& spec : e.specs) {
      e.state.push_back(empty(spec.shape, {dtype, e.parameter.device()}));
      fill(e.state.back(), spec.initial);
    }
  for (Tensor& s : e.state) s = to(s, e.parameter.device());  // in case the parameter moved since the last step
  ++e.steps;
  return true;
}

TensorMap Optimizer::state_dict() const { return detached::clone(live_state()); }

TensorMap Optimizer::live_state() const {
  TensorMap map;
  for (int g = 0; g < groups(); ++g) {
    map.add(text("group.", g, ".lr"), from_vector<double>({lr_[g]}, Dims()));
    if (g > 0) map.add(text("group.", g, ".lr_factor"), from_vector<double>({factors_[g]}, Dims()));
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    if (e.steps == 0) continue;
    map.add(text(i, ".step"), from_vector<int64_t>({e.steps}, Dims()));
    for (size_t s = 0; s < e.state.size(); ++s) map.add(text(i, '.', e.specs[s].name), e.state[s]);
  }
  return map;
}

// The state of parameter `e` from the tensors of `from` whose names begin with `prefix`.
Optimizer::Entry Optimizer::loaded(const Entry& e, const std::string& prefix, const TensorMap& from) const {
  Entry result{e.parameter, e.group, e.specs};
  const Tensor* step = from.find(prefix + "step");
  if (!step) return result;
  check(step->dtype() == DType::i64 && step->numel() == 1 && step->item() >= 0, name_, ": the state '", prefix,
        "step' is ", step->dtype(), ' ', step->shape(), ", expected one i64 from 0");
  result.steps = step->to_vector<int64_t>()[0];
  if (result.steps == 0) return result;
  for (const auto& [name, shape, initial] : e.specs) {
    const Tensor* t = from.find(prefix + name);
    const TensorOptions options{acc_dtype(e.parameter.dtype()), e.parameter.device()};
    check(t != nullptr, name_, ": the state '", prefix, name, "' is missing");
    check(t->shape() == shape && t->dtype() == options.dtype, name_, ": the state '", prefix, name, "' is ", t->dtype(),
          ' ', t->shape(), ", expected ", options.dtype, ' ', shape);
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
    for (size_t s = 0; s < entries.back().state.size(); ++s) known.insert(text(i, '.', entries.back().specs[s].name));
  }
  const auto number = [&](const std::string& name) {
    const Tensor* t = state.find(name);
    check(t != nullptr, name_, ": the state '", name, "' is missing");
    check(t->dtype() == DType::f64 && t->numel() == 1, name_, ": the state '", name, "' is ", t->dtype(), ' ',
          t->shape(), ", expected one f64");
    known.insert(name);
    return t->item();
  };
  std::vector<double> lr, factors = factors_;
  for (int g = 0; g < groups(); ++g) {
    const std::string name = text("group.", g, ".lr"), factor = name + "_factor";
    lr.push_back(number(name));
    check_option(not_negative(name.c_str(), lr.back()));
    if (g == 0 || !state.find(factor)) continue;
    factors[g] = number(factor);  // infinite if the first group was constructed with rate 0
    check_option({factors[g] >= 0, factor.c_str(), factors[g], "a number from 0"});
  }
  for (const auto& [name, t] : state)
    check(known.contains(name), name_, ": the state '", name, "' is unknown to these ", entries_.size(), " parameters");
  entries_ = std::move(entries);
  ++loads_;
  lr_ = std::move(lr);
  factors_ = std::move(factors);
}

}  // namespace isonorm::optim
