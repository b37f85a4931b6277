#include "optim/adam.h"

namespace isonorm::optim {

void AdamBase::add_group(const std::vector<Tensor>& parameters, const AdamOptions& o) {
  check_fraction("beta1", o.beta1);
  check_fraction("beta2", o.beta2);
  check_not_negative("eps", o.eps);
  check_not_negative("weight_decay", o.weight_decay);
  Optimizer::add_group(parameters, o.lr, {"exp_avg", "exp_avg_sq"});
  options_.resize(groups());  // earlier groups may belong to a derived class
  options_.back() = o;
}

AdamBase::Step AdamBase::step_of(int group, int64_t t) const {
  const AdamOptions& o = options_[group];
  const double rate = lr(group);
  return {.rule = rules::Adam::at(t, rate, o.beta1, o.beta2, o.eps),
          .l2 = decoupled_ ? 0 : o.weight_decay,
          .keep = decoupled_ ? 1 - rate * o.weight_decay : 1};
}

Adam::Adam(const std::vector<Tensor>& parameters, AdamOptions options)
    : Adam(std::vector<ParameterGroup<AdamOptions>>{{parameters, options}}) {}

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups) : AdamBase("adam", count(groups), false) {
  for (const auto& [parameters, options] : groups) add_group(parameters, options);
}

}  // namespace isonorm::optim
