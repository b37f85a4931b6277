#include "training/step.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "optim/clip.h"

namespace isonorm::training {

Tensor cross_entropy_of(nn::Module& model, const Examples& batch) {
  return cross_entropy(model(batch.inputs), batch.targets);
}

LimitedGradients limit_gradients(const GradientLimits& limits, const std::vector<Tensor>& parameters) {
  check(limits.l2 >= 0 && limits.value >= 0 && limits.norm >= 0, "step: limits l2 ", limits.l2, ", value ",
        limits.value, " and norm ", limits.norm, ", expected 0 or more of each");
  if (limits.l2 > 0 || limits.value > 0)
    for (const Tensor& p : parameters) {
      const Tensor g = gradient(p);
      if (g.defined()) set_gradient(p, detached::clone(g));
    }
  if (limits.l2 > 0) optim::add_l2(parameters, limits.l2);
  if (limits.value > 0) optim::clip_grad_value(parameters, limits.value);
  if (limits.norm == 0) return {};
  const double norm = optim::gradient_norm(parameters);
  return {optim::clip_factor(norm, limits.norm), norm};
}

double differentiate(nn::Module& model, const Objective& loss_of, const Examples& batch, int64_t parts) {
  for (const Tensor& p : model.parameters()) set_gradient(p, {});
  if (parts == 1) {
    const Tensor loss = loss_of(model, batch);
    backward(loss);
    return loss.item();
  }
  const int64_t examples = batch.targets.size(0);
  check(parts >= 1 && examples % parts == 0, "step: ", examples, " examples in ", parts, " parts of equal size");
  const double share = 1.0 / static_cast<double>(parts);
  double sum = 0;
  for (int64_t part = 0, size = examples / parts; part < parts; ++part) {
    const Tensor loss =
        loss_of(model, {narrow(batch.inputs, 0, part * size, size), narrow(batch.targets, 0, part * size, size)});
    backward(loss * share);
    sum += loss.item() / static_cast<double>(parts);
  }
  return sum;
}

Step::Step(nn::Module& model, optim::Optimizer& optimizer, Objective loss, StepOptions options)
    : model_(model), optimizer_(optimizer), loss_(std::move(loss)), options_(std::move(options)) {}

StepResult Step::operator()(const Examples& batch, std::optional<double> lr) {
  const double loss = differentiate(batch);
  return {loss, update(lr)};
}

double Step::differentiate(const Examples& batch) {
  std::optional<SaveActivations> kept_as;
  if (options_.activations) kept_as.emplace(*options_.activations);
  return training::differentiate(model_, loss_, batch, options_.accumulate);
}

std::optional<double> Step::update(std::optional<double> lr) {
  if (lr) optimizer_.set_lr(*lr);
  const LimitedGradients limited = limit_gradients(options_.limits, optimizer_.parameters());
  if (options_.apply)
    options_.apply(limited.scale);
  else
    optimizer_.step(limited.scale);
  return limited.norm;
}

}  // namespace isonorm::training
