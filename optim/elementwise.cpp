#include "optim/elementwise.h"

#include <algorithm>

#include "core/kernels/optimizer.h"

namespace isonorm::optim {

ElementwiseOptimizer::ElementwiseOptimizer(const char* name) : Optimizer(name) {}
ElementwiseOptimizer::~ElementwiseOptimizer() = default;

void ElementwiseOptimizer::prepare(std::vector<kernels::Update>&, const std::vector<const Entry*>&) {}

void ElementwiseOptimizer::run(std::vector<kernels::Update>& updates) const { kernels::update.on(device(), updates); }

void ElementwiseOptimizer::step(double gradient_scale) {
  updates_.clear();  // what a step that threw left
  stepped_.clear();
  Tensor gradient;
  for (Entry& e : entries()) {
    if (!begin_step(e, gradient)) continue;
    const Step s = step_of(e.group, e.steps);
    updates_.push_back({.gradient = std::move(gradient),
                        .parameter = e.parameter,
                        .state = {},
                        .gradient_scale = gradient_scale,
                        .l2 = s.l2,
                        .keep = s.keep,
                        .rule = s.rule});
    stepped_.push_back(&e);
    std::copy(e.state.begin(), e.state.end(), updates_.back().state.begin());
  }
  prepare(updates_, stepped_);
  run(updates_);
  updates_.clear();  // keeps no gradient alive
}

}  // namespace isonorm::optim
