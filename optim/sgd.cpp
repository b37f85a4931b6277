#include "optim/sgd.h"

#include <cmath>

namespace isonorm::optim {

Sgd::Sgd(const std::vector<Tensor>& parameters, SgdOptions options)
    : Sgd(std::vector<ParameterGroup<SgdOptions>>{{parameters, options}}) {}

Sgd::Sgd(const std::vector<ParameterGroup<SgdOptions>>& groups) : Optimizer("sgd", {"momentum_buffer"}) {
  for (const auto& [parameters, o] : groups) {
    check_option(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "a number in [0, 1)");
    check_option(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "weight_decay", o.weight_decay,
                 "a finite number from 0");
    check_option(!o.nesterov || o.momentum > 0, "momentum", o.momentum, "more than 0 with nesterov");
    add_group(parameters, o.lr, o.momentum > 0);
    options_.push_back(o);
  }
}

void Sgd::step(double gradient_scale) {
  updates_.clear();
  Tensor gradient;
  for (Entry& e : entries()) {
    if (!begin_step(e, gradient)) continue;
    const SgdOptions& o = options_[e.group];
    updates_.push_back({.gradient = std::move(gradient),
                        .parameter = e.parameter,
                        .momentum_buffer = e.state.empty() ? Tensor() : e.state[0],
                        .lr = lr(e.group),
                        .momentum = o.momentum,
                        .weight_decay = o.weight_decay,
                        .gradient_scale = gradient_scale,
                        .nesterov = o.nesterov});
  }
  const int64_t blocks = kernels::number_blocks(updates_);
  kernels::sgd.on(device(), updates_, blocks);
  updates_.clear();  // keeps no gradient alive
}

}  // namespace isonorm::optim
