#include "nn/hooks.h"

#include "autograd/engine.h"
#include "autograd/ops/shape.h"
#include "nn/module.h"

namespace isonorm::nn {
namespace {

// x as the result of an op of its own, so that hooks of its gradient see one use of x.
Tensor separate(const Tensor& x) { return requires_grad(x) ? reshape(unsqueeze(x, 0), x.shape()) : x; }

}  // namespace

Tensor ModuleHooks::after_forward(const Module& module, const Tensor& input, Tensor output) const {
  const auto hooks = forward;  // a hook may remove itself
  for (const auto& hook : hooks) output = (*hook)(module, input, output);
  return output;
}

Tensor ModuleHooks::run(const Module& module, const Tensor& x,
                        const std::function<Tensor(const Tensor&)>& compute) const {
  if (backward.empty()) return after_forward(module, x, compute(x));
  const Tensor input = separate(x), output = separate(after_forward(module, input, compute(input)));
  if (!requires_grad(output)) return output;
  // The gradient of the output is complete before the gradient of the input is.
  const auto grad_output = std::make_shared<Tensor>();
  const auto call = [&module, hooks = backward, grad_output](Tensor grad_input) {
    for (const auto& hook : hooks) grad_input = (*hook)(module, grad_input, *grad_output);
    return grad_input;
  };
  const bool ends = !requires_grad(input);
  on_grad(output, [=](const Tensor& g) {
    *grad_output = g;
    if (ends) call({});
    return g;
  });
  if (!ends) on_grad(input, call);
  return output;
}

ModuleHookHandle Module::on_forward(ForwardHook hook) {
  check(static_cast<bool>(hook), "on_forward: the hook is empty");
  if (!hooks_) hooks_ = std::make_shared<ModuleHooks>();
  return {hooks_, hooks_->forward.emplace_back(std::make_shared<ForwardHook>(std::move(hook)))};
}

ModuleHookHandle Module::on_backward(BackwardHook hook) {
  check(static_cast<bool>(hook), "on_backward: the hook is empty");
  if (!hooks_) hooks_ = std::make_shared<ModuleHooks>();
  return {hooks_, hooks_->backward.emplace_back(std::make_shared<BackwardHook>(std::move(hook)))};
}

void ModuleHookHandle::remove() {
  const std::shared_ptr<ModuleHooks> hooks = hooks_.lock();
  const std::shared_ptr<const void> hook = hook_.lock();
  if (!hooks || !hook) return;
  std::erase_if(hooks->forward, [&](const auto& h) { return h == hook; });
  std::erase_if(hooks->backward, [&](const auto& h) { return h == hook; });
}

}  // namespace isonorm::nn
