#include "optim/lion.h"

namespace isonorm::optim {

Lion::Lion(const std::vector<Tensor>& parameters, LionOptions options)
    : Lion(std::vector<ParameterGroup<LionOptions>>{{parameters, options}}) {}

Lion::Lion(const std::vector<ParameterGroup<LionOptions>>& groups) : ElementwiseOptimizer("lion", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_fraction("beta1", o.beta1);
    check_fraction("beta2", o.beta2);
    check_not_negative("weight_decay", o.weight_decay);
    add_group(parameters, o.lr, {"exp_avg"});
    options_.push_back(o);
  }
}

Lion::Step Lion::step_of(int group, int64_t) const {
  const LionOptions& o = options_[group];
  const double rate = lr(group);
  return {.rule = rules::Lion{.lr = rate, .beta1 = o.beta1, .beta2 = o.beta2}, .keep = 1 - rate * o.weight_decay};
}

}  // namespace isonorm::optim
