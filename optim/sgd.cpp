#include "optim/sgd.h"

namespace isonorm::optim {

Sgd::Sgd(const std::vector<Tensor>& parameters, SgdOptions options)
    : Sgd(std::vector<ParameterGroup<SgdOptions>>{{parameters, options}}) {}

Sgd::Sgd(const std::vector<ParameterGroup<SgdOptions>>& groups) : ElementwiseOptimizer("sgd", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_fraction("momentum", o.momentum);
    check_not_negative("weight_decay", o.weight_decay);
    check_fraction("dampening", o.dampening);
    check_option(!o.nesterov || o.momentum > 0, "momentum", o.momentum, "more than 0 with nesterov");
    check_option(!o.nesterov || o.dampening == 0, "dampening", o.dampening, "0 with nesterov");
    if (o.momentum > 0)
      add_group(parameters, o.lr, {"momentum_buffer"});
    else
      add_group(parameters, o.lr);
    options_.push_back(o);
  }
}

Sgd::Step Sgd::step_of(int group, int64_t t) const {
  const SgdOptions& o = options_[group];
  const double rate = lr(group);
  UpdateRule rule = rules::Sgd{rate};
  if (o.momentum > 0)
    rule = rules::Momentum{.lr = rate,
                           .momentum = o.momentum,
                           .take = t == 1 ? 1 : 1 - o.dampening,
                           .now = o.nesterov ? 1.0 : 0.0,
                           .ahead = o.nesterov ? o.momentum : 1};
  return {rule, o.decoupled ? 0 : o.weight_decay, o.decoupled ? 1 - rate * o.weight_decay : 1};
}

}  // namespace isonorm::optim
