#include "optim/adam.h"

#include <cmath>

namespace isonorm::optim {

void AdamBase::add_group(const std::vector<Tensor>& parameters, const AdamOptions& o) {
  check_option(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "a number in [0, 1)");
  check_option(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "a number in [0, 1)");
  check_option(o.eps >= 0 && std::isfinite(o.eps), "eps", o.eps, "a finite number from 0");
  check_option(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "weight_decay", o.weight_decay,
               "a finite number from 0");
  Optimizer::add_group(parameters, o.lr, true);
  options_.push_back(o);
}

void AdamBase::step(double gradient_scale) {
  updates_.clear();
  Tensor gradient;
  for (Entry& e : entries()) {
    if (!begin_step(e, gradient)) continue;
    const AdamOptions& o = options_[e.group];
    const double rate = lr(e.group), t = static_cast<double>(e.steps);
    updates_.push_back({.gradient = std::move(gradient),
                        .parameter = e.parameter,
                        .exp_avg = e.state[0],
                        .exp_avg_sq = e.state[1],
                        .beta1 = o.beta1,
                        .beta2 = o.beta2,
                        .eps = o.eps,
                        .l2 = decoupled_ ? 0 : o.weight_decay,
                        .keep = decoupled_ ? 1 - rate * o.weight_decay : 1,
                        .step_size = rate / (1 - std::pow(o.beta1, t)),
                        .root_scale = 1 / std::sqrt(1 - std::pow(o.beta2, t)),
                        .gradient_scale = gradient_scale});
  }
  const int64_t blocks = kernels::number_blocks(updates_);
  kernels::adam.on(device(), updates_, blocks);
  updates_.clear();  // keeps no gradient alive
}

Adam::Adam(const std::vector<Tensor>& parameters, AdamOptions options)
    : Adam(std::vector<ParameterGroup<AdamOptions>>{{parameters, options}}) {}

Adam::Adam(const std::vector<ParameterGroup<AdamOptions>>& groups) : AdamBase("adam", false) {
  for (const auto& [parameters, options] : groups) add_group(parameters, options);
}

}  // namespace isonorm::optim
