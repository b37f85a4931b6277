#include "optim/lars.h"

#include <cmath>

#include "core/kernels/optimizer.h"
#include "optim/clip.h"

namespace isonorm::optim {

Lars::Lars(const std::vector<Tensor>& parameters, LarsOptions options)
    : Lars(std::vector<ParameterGroup<LarsOptions>>{{parameters, options}}) {}

Lars::Lars(const std::vector<ParameterGroup<LarsOptions>>& groups) : ElementwiseOptimizer("lars") {
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
  std::vector<Tensor> tensors;
  for (const kernels::Update& u : updates) tensors.insert(tensors.end(), {u.parameter, u.gradient});
  const std::vector<double> norms = norms_of(tensors);
  for (size_t i = 0; i < updates.size(); ++i) {
    const LarsOptions& o = options_[stepped[i]->group];
    kernels::Update& u = updates[i];
    const double weight = norms[2 * i], gradient = norms[2 * i + 1] * std::abs(u.gradient_scale);
    if (!o.adapt || weight == 0 || gradient == 0) continue;
    const double ratio = o.trust * weight / (gradient + o.weight_decay * weight);
    u.gradient_scale *= ratio;
    u.l2 *= ratio;
  }
}

}  // namespace isonorm::optim
