// Hooks of modules: functions that see, and may replace, the output of a module and the gradient of its input. A
// program registers them by Module::on_forward() and Module::on_backward().
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace isonorm::nn {

class Module;

// Called after each forward, with output = module(input). The returned tensor replaces the output; to only look, return
// the argument.
using ForwardHook = std::function<Tensor(const Module& module, const Tensor& input, const Tensor& output)>;

// Called in the backward of each forward, with the gradients of the loss with respect to this forward's output and
// input. The returned tensor replaces the gradient of the input; to only look, return the argument. If the input takes
// no gradient (ids, the data of a first layer), grad_input is undefined and the result is ignored.
using BackwardHook = std::function<Tensor(const Module& module, const Tensor& grad_input, const Tensor& grad_output)>;

// A module's hooks, in order of addition.
struct ModuleHooks {
  std::vector<std::shared_ptr<ForwardHook>> forward;
  std::vector<std::shared_ptr<BackwardHook>> backward;

  // forward(input) with all hooks.
  Tensor run(const Module& module, const Tensor& input, const std::function<Tensor(const Tensor&)>& compute) const;
  // Returns the output after the forward hooks.
  Tensor after_forward(const Module& module, const Tensor& input, Tensor output) const;
};

// Removes a hook of a module. Copies remove the same hook. Destroying a handle does not remove the hook.
class ModuleHookHandle {
 public:
  ModuleHookHandle() = default;  // remove() does nothing
  ModuleHookHandle(std::weak_ptr<ModuleHooks> hooks, std::weak_ptr<const void> hook)
      : hooks_(std::move(hooks)), hook_(std::move(hook)) {}
  // Removes the hook; the hook itself may call this. Does nothing if it is already removed or the module is gone.
  void remove();

 private:
  std::weak_ptr<ModuleHooks> hooks_;
  std::weak_ptr<const void> hook_;
};

}  // namespace isonorm::nn
