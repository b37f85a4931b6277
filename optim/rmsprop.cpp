#include "optim/rmsprop.h"

namespace isonorm::optim {

Rmsprop::Rmsprop(const std::vector<Tensor>& parameters, RmspropOptions options)
    : Rmsprop(std::vector<ParameterGroup<RmspropOptions>>{{parameters, options}}) {}

Rmsprop::Rmsprop(const std::vector<ParameterGroup<RmspropOptions>>& groups)
    : ElementwiseOptimizer("rmsprop", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_fraction("alpha", o.alpha);
    check_not_negative("eps", o.eps);
    check_not_negative("weight_decay", o.weight_decay);
    check_fraction("momentum", o.momentum);
    std::vector<const char*> names{"square_avg"};
    if (o.centered) names.push_back("grad_avg");
    if (o.momentum > 0) names.push_back("momentum_buffer");
    add_group(parameters, o.lr, names);
    options_.push_back(o);
  }
}

Rmsprop::Step Rmsprop::step_of(int group, int64_t) const {
  const RmspropOptions& o = options_[group];
  const auto with = [&]<class Rule>(Rule) {
    return Step{.rule = Rule{lr(group), o.alpha, o.eps, o.momentum}, .l2 = o.weight_decay};
  };
  if (o.centered) return o.momentum > 0 ? with(rules::Rmsprop<true, true>{}) : with(rules::Rmsprop<true, false>{});
  return o.momentum > 0 ? with(rules::Rmsprop<false, true>{}) : with(rules::Rmsprop<false, false>{});
}

}  // namespace isonorm::optim
