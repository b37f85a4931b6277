#include "optim/ema.h"

#include <algorithm>

#include "core/kernels/optimizer.h"
#include "core/view.h"

namespace isonorm::optim {
namespace {

void copy_all(const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  for (size_t i = 0; i < to.size(); ++i) copy_into(detach(to[i]), detach(from[i]));
}

}  // namespace

Ema::Ema(const std::vector<Tensor>& parameters, EmaOptions options) : options_(options), parameters_(parameters) {
  check(options.decay >= 0 && options.decay < 1, "ema: decay is ", options.decay, ", expected a number in [0, 1)");
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& p = parameters[i];
    check(p.defined(), "ema: parameter ", i, " is undefined");
    check(p.is_contiguous(), "ema: parameter ", i, " has shape ", p.shape(), " and strides ", p.strides(),
          ", expected a contiguous one");
    check(p.device() == parameters[0].device(), "ema: parameters lie on ", parameters[0].device(), " and on ",
          p.device());
    averages_.push_back(empty(p.shape(), {acc_dtype(p.dtype()), p.device()}));
  }
  copy_all(averages_, parameters_);
}

void Ema::update() {
  check(aside_.empty(), "ema: update between apply() and restore() would average the averages");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor &p = parameters_[i], &average = averages_[i];
    check(p.shape() == average.shape() && acc_dtype(p.dtype()) == average.dtype() && p.device() == average.device(),
          "ema: parameter ", i, " is ", p.dtype(), ' ', p.shape(), " on ", p.device(), " now, its average is ",
          average.dtype(), ' ', average.shape(), " on ", average.device(),
          "; make the average after to() and replace()");
  }
  const double t = static_cast<double>(++steps_);
  const double decay = options_.warmup ? std::min(options_.decay, (1 + t) / (10 + t)) : options_.decay;
  std::vector<kernels::Update> updates;  // the rule averages its "gradient", here the weights
  for (size_t i = 0; i < parameters_.size(); ++i)
    updates.push_back({.gradient = parameters_[i],
                       .parameter = parameters_[i],
                       .state = {averages_[i]},
                       .rule = rules::Average{1 - decay}});
  if (!updates.empty()) kernels::update.on(parameters_.front().device(), updates);
}

void Ema::apply() {
  check(aside_.empty(), "ema: the averages are in the parameters already; call restore() first");
  for (const Tensor& p : parameters_) aside_.push_back(empty_like(p));
  copy_all(aside_, parameters_);
  copy_all(parameters_, averages_);
}

void Ema::restore() {
  check(!aside_.empty() || parameters_.empty(), "ema: there is nothing to restore; call apply() first");
  copy_all(parameters_, aside_);
  aside_.clear();
}

TensorMap Ema::state_dict() const { return detached::clone(live_state()); }

TensorMap Ema::live_state() const {
  check(aside_.empty(), "ema: the averages are in the parameters; call restore() before the state is saved");
  TensorMap map;
  map.add("step", from_vector<int64_t>({steps_}, Dims()));
  for (size_t i = 0; i < averages_.size(); ++i) map.add(text(i, ".average"), averages_[i]);
  return map;
}

void Ema::load_state_dict(const TensorMap& state) {
  check(aside_.empty(), "ema: the averages are in the parameters; call restore() before a state is loaded");
  const Tensor* step = state.find("step");
  check(step != nullptr, "ema: the state 'step' is missing");
  check(step->dtype() == DType::i64 && step->numel() == 1 && step->item() >= 0, "ema: the state 'step' is ",
        step->dtype(), ' ', step->shape(), ", expected one i64 from 0");
  std::vector<Tensor> loaded;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const Tensor* t = state.find(text(i, ".average"));
    check(t != nullptr, "ema: the state '", i, ".average' is missing");
    check(t->shape() == averages_[i].shape() && t->dtype() == averages_[i].dtype(), "ema: the state '", i,
          ".average' is ", t->dtype(), ' ', t->shape(), ", expected ", averages_[i].dtype(), ' ', averages_[i].shape());
    loaded.push_back(*t);
  }
  check(state.size() == loaded.size() + 1, "ema: the state has ", state.size(), " entries, expected ",
        loaded.size() + 1);
  steps_ = step->to_vector<int64_t>()[0];
  copy_all(averages_, loaded);
}

}  // namespace isonorm::optim
