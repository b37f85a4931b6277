#include "optim/elementwise.h"

#include <algorithm>

#include "autograd/ops/pointwise.h"
#include "core/kernels/optimizer.h"
#include "core/system/float_environment.h"

namespace isonorm::optim {

ElementwiseOptimizer::ElementwiseOptimizer(const char* name, size_t parameters) : Optimizer(name, parameters) {}
ElementwiseOptimizer::ElementwiseOptimizer(ElementwiseOptimizer&&) noexcept = default;
ElementwiseOptimizer& ElementwiseOptimizer::operator=(ElementwiseOptimizer&&) noexcept = default;
ElementwiseOptimizer::~ElementwiseOptimizer() = default;

void ElementwiseOptimizer::add_group(const std::vector<Tensor>& parameters, double lr, const Group& group) {
  for (const Condition& c : group.conditions) check_option(c);
  if (group.specs_of)
    Optimizer::add_group(parameters, lr, group.specs_of);
  else
    Optimizer::add_group(parameters, lr, group.state, group.initial);
}

void ElementwiseOptimizer::prepare(std::vector<kernels::Update>&, const std::vector<const Entry*>&) {}

void ElementwiseOptimizer::run(std::vector<kernels::Update>& updates) const { kernels::update.on(device(), updates); }

std::vector<kernels::Update> ElementwiseOptimizer::advance() {
  if (!replays()) return Optimizer::advance();
  const DefaultFloatEnvironment environment;
  std::vector<kernels::Update> updates;
  for (size_t i : last_) {
    Entry& e = entries()[i];
    const Step s = step_of(e.group, ++e.steps);
    updates.push_back({.gradient = {},
                       .parameter = {},
                       .state = {},
                       .gradient_scale = last_scale_,
                       .l2 = s.l2,
                       .keep = s.keep,
                       .rule = s.rule});
  }
  return updates;
}

Tensor ElementwiseOptimizer::scaled_gradient(const kernels::Update& u, DType dtype) {
  const Tensor g = u.gradient.to(dtype);
  return u.gradient_factor.defined() ? g * (u.gradient_factor * u.gradient_scale).to(dtype) : g * u.gradient_scale;
}

void ElementwiseOptimizer::set_trust(std::vector<kernels::Update>& updates, const std::vector<Tensor>& pairs,
                                     const std::vector<kernels::TrustRatio>& ratios) const {
  if (updates.empty()) return;
  const TensorOptions options{DType::f64, device()};
  const Tensor sums = empty({std::ssize(pairs)}, options), trust = empty({std::ssize(ratios)}, options);
  kernels::sum_squares.on(options.device, pairs, sums);
  kernels::trust_ratios.on(options.device, trust, sums, ratios, updates.front().gradient_factor);
  for (size_t i = 0; i < updates.size(); ++i) updates[i].trust = as_strided(trust, {}, {}, static_cast<int64_t>(i));
}

void ElementwiseOptimizer::step_scaled(const Tensor& gradient_factor) {
  check_factor(gradient_factor);
  take_step(1, gradient_factor);
}

void ElementwiseOptimizer::take_step(double gradient_scale, const Tensor& gradient_factor) {
  const DefaultFloatEnvironment environment;
  updates_.clear();  // left over if the last step threw
  stepped_.clear();
  last_.clear();
  last_scale_ = gradient_scale;
  Tensor gradient;
  for (Entry& e : entries()) {
    if (!begin_step(e, gradient)) continue;
    last_.push_back(static_cast<size_t>(&e - entries().data()));
    const Step s = step_of(e.group, e.steps);
    updates_.push_back({.gradient = std::move(gradient),
                        .parameter = e.parameter,
                        .state = {},
                        .gradient_scale = gradient_scale,
                        .l2 = s.l2,
                        .keep = s.keep,
                        .rule = s.rule,
                        .gradient_factor = gradient_factor});
    stepped_.push_back(&e);
    std::copy(e.state.begin(), e.state.end(), updates_.back().state.begin());
  }
  prepare(updates_, stepped_);
  run(updates_);
  updates_.clear();  // releases the gradients
}

}  // namespace isonorm::optim
