#include "optim/trust_ratio.h"

#include "core/kernels/optimizer.h"

namespace isonorm::optim {

template class ElementwiseGroups<Lars, LarsOptions>;
template class ElementwiseGroups<Lamb, LambOptions>;

Lars::Group Lars::group_of(const LarsOptions& o) {
  return {.conditions = {fraction("momentum", o.momentum), not_negative("weight_decay", o.weight_decay),
                         not_negative("trust", o.trust)},
          .state = {"momentum_buffer"}};
}

Lars::Step Lars::step_with(const LarsOptions& o, double lr, int64_t) {
  return {.rule = rules::Momentum{.lr = 1, .momentum = o.momentum, .take = lr, .now = 0, .ahead = 1},
          .l2 = o.weight_decay};
}

void Lars::prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) {
  std::vector<Tensor> pairs;
  std::vector<kernels::TrustRatio> ratios;
  for (size_t i = 0; i < updates.size(); ++i) {
    const LarsOptions& o = options_[stepped[i]->group];
    pairs.insert(pairs.end(), {updates[i].parameter, updates[i].gradient});
    ratios.push_back({o.adapt, o.trust, o.weight_decay, updates[i].gradient_scale});
  }
  set_trust(updates, pairs, ratios);
}

Lamb::Group Lamb::group_of(const LambOptions& o) {
  return {.conditions = {fraction("beta1", o.beta1), fraction("beta2", o.beta2), not_negative("eps", o.eps),
                         not_negative("weight_decay", o.weight_decay)},
          .state = {"exp_avg", "exp_avg_sq"}};
}

Lamb::Step Lamb::step_with(const LambOptions& o, double, int64_t t) {
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
