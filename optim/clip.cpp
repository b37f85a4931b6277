#include "optim/clip.h"

#include <cmath>

#include "autograd/engine.h"
#include "core/kernels/optimizer.h"
#include "core/system/float_environment.h"

namespace isonorm::optim {
namespace {

// The device of a list that is not empty. Throws if the tensors are on several devices.
Device device_of(const std::vector<Tensor>& tensors) {
  const Device device = tensors.front().device();
  for (const Tensor& x : tensors)
    check(x.device() == device, "clip: gradients lie on ", device, " and on ", x.device());
  return device;
}

// The gradients of the parameters that have one.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const Tensor& p : parameters)
    if (Tensor g = p.grad(); g.defined()) gradients.push_back(std::move(g));
  return gradients;
}

// The sum of squares of each tensor, f64 [tensors]. The list is not empty.
Tensor sums_of_squares(const std::vector<Tensor>& tensors) {
  const Device device = device_of(tensors);
  const Tensor sums = empty({std::ssize(tensors)}, {DType::f64, device});
  kernels::sum_squares.on(device, tensors, sums);
  return sums;
}

double norm_of(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return 0;
  const DefaultFloatEnvironment environment;
  double sum = 0;
  for (double s : sums_of_squares(tensors).to_vector<double>()) sum += s;
  return std::sqrt(sum);
}

}  // namespace

double grad_norm(const std::vector<Tensor>& parameters) { return norm_of(gradients_of(parameters)); }

double clip_factor(double norm, double max_norm) {
  check(max_norm > 0, "clip_grad_norm: max_norm is ", max_norm, ", expected more than 0");
  const DefaultFloatEnvironment environment;
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

ClipNumbers clip_numbers(const std::vector<Tensor>& parameters, double max_norm) {
  (void)clip_factor(0, max_norm);  // throws if max_norm is not above 0
  const std::vector<Tensor> gradients = gradients_of(parameters);
  const Device device =
      gradients.empty() ? parameters.empty() ? kCpu : parameters.front().device() : device_of(gradients);
  const Tensor sums = gradients.empty() ? empty({0}, {DType::f64, device}) : sums_of_squares(gradients);
  const Tensor numbers = empty({2}, sums.options());
  kernels::clip_numbers.on(device, numbers, sums, max_norm);
  return {as_strided(numbers, {}, {}, 0), as_strided(numbers, {}, {}, 1)};
}

double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
  const std::vector<Tensor> gradients = gradients_of(parameters);
  const double norm = norm_of(gradients), factor = clip_factor(norm, max_norm);
  if (factor != 1 && !gradients.empty()) kernels::scale.on(device_of(gradients), gradients, factor);
  return norm;
}

void clip_grad_value(const std::vector<Tensor>& parameters, double limit) {
  check(limit >= 0, "clip_grad_value: limit is ", limit, ", expected a number from 0");
  const std::vector<Tensor> gradients = gradients_of(parameters);
  if (!gradients.empty()) kernels::clamp.on(device_of(gradients), gradients, limit);
}

void add_l2(const std::vector<Tensor>& parameters, double weight_decay) {
  check(weight_decay >= 0 && std::isfinite(weight_decay), "add_l2: weight_decay is ", weight_decay,
        ", expected a finite number from 0");
  std::vector<kernels::Update> updates;  // SGD steps on the gradients, with the weights as their gradients
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) {
      check(p.is_contiguous(), "add_l2: a parameter has shape ", p.shape(), " and strides ", p.strides(),
            ", expected a contiguous one");
      updates.push_back({.gradient = p, .parameter = g, .state = {}, .rule = rules::Sgd{-weight_decay}});
    }
  if (!updates.empty()) kernels::update.on(updates.front().gradient.device(), updates);
}

}  // namespace isonorm::optim
