#include "optim/lamb.h"

#include "core/kernels/optimizer.h"

namespace isonorm::optim {

Lamb::Lamb(const std::vector<Tensor>& parameters, LambOptions options)
    : Lamb(std::vector<ParameterGroup<LambOptions>>{{parameters, options}}) {}

Lamb::Lamb(const std::vector<ParameterGroup<LambOptions>>& groups) : ElementwiseOptimizer("lamb", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_fraction("beta1", o.beta1);
    check_fraction("beta2", o.beta2);
    check_not_negative("eps", o.eps);
    check_not_negative("weight_decay", o.weight_decay);
    add_group(parameters, o.lr, {"exp_avg", "exp_avg_sq"});
    options_.push_back(o);
  }
}

Lamb::Step Lamb::step_of(int group, int64_t t) const {
  const LambOptions& o = options_[group];
  return {.rule = rules::LambDirection{rules::Adam::at(t, 1, o.beta1, o.beta2, o.eps), o.weight_decay}};
}

void Lamb::prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) {
  std::vector<Tensor> tensors;
  for (kernels::Update& u : updates) {
    const Tensor direction = u.state[2] = empty_like(u.state[0]);
    tensors.insert(tensors.end(), {u.parameter, direction});
  }
  run(updates);
  std::vector<kernels::TrustRatio> ratios;
  for (size_t i = 0; i < updates.size(); ++i) {
    const int group = stepped[i]->group;
    ratios.push_back({.adapt = options_[group].adapt, .coefficient = 1, .weight_decay = 0, .gradient_scale = 1});
    updates[i].state[0] = tensors[2 * i + 1];
    updates[i].gradient_factor = {};  // applied to the direction already
    updates[i].rule = rules::Along{lr(group)};
  }
  set_trust(updates, tensors, ratios);
}

}  // namespace isonorm::optim
