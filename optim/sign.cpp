#include "optim/sign.h"

namespace isonorm::optim {

SignSgd::SignSgd(const std::vector<Tensor>& parameters, SignSgdOptions options)
    : SignSgd(std::vector<ParameterGroup<SignSgdOptions>>{{parameters, options}}) {}

SignSgd::SignSgd(const std::vector<ParameterGroup<SignSgdOptions>>& groups)
    : ElementwiseOptimizer("sign_sgd", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_fraction("momentum", o.momentum);
    check_not_negative("weight_decay", o.weight_decay);
    if (o.momentum > 0)
      add_group(parameters, o.lr, {"exp_avg"});
    else
      add_group(parameters, o.lr);
    options_.push_back(o);
  }
}

SignSgd::Step SignSgd::step_of(int group, int64_t) const {
  const SignSgdOptions& o = options_[group];
  const double rate = lr(group);
  UpdateRule rule = rules::Sign{rate};
  if (o.momentum > 0) rule = rules::Lion{.lr = rate, .beta1 = o.momentum, .beta2 = o.momentum};
  return {.rule = rule, .keep = 1 - rate * o.weight_decay};
}

}  // namespace isonorm::optim
