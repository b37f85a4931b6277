#include "optim/lars.h"

#include "core/kernels/optimizer.h"

namespace isonorm::optim {

Lars::Lars(const std::vector<Tensor>& parameters, LarsOptions options)
    : Lars(std::vector<ParameterGroup<LarsOptions>>{{parameters, options}}) {}

Lars::Lars(const std::vector<ParameterGroup<LarsOptions>>& groups) : ElementwiseOptimizer("lars", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_fraction("momentum", o.momentum);
    check_not_negative("weight_decay", o.weight_decay);
    check_not_negative("trust", o.trust);
    add_group(parameters, o.lr, {"momentum_buffer"});
    options_.push_back(o);
  }
}

Lars::Step Lars::step_of(int group, int64_t) const {
  const LarsOptions& o = options_[group];
  return {.rule = rules::Momentum{.lr = 1, .momentum = o.momentum, .take = lr(group), .now = 0, .ahead = 1},
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

}  // namespace isonorm::optim
