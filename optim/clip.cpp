#include "optim/clip.h"

#include <cmath>

#include "autograd/engine.h"
#include "core/kernels/optimizer.h"

namespace isonorm::optim {
namespace {

// The gradient of p where there is one, contiguous (one that is not is replaced by a copy that is).
Tensor dense_gradient(const Tensor& p) {
  Tensor g = gradient(p);
  if (!g.defined() || g.is_contiguous()) return g;
  Tensor dense = empty_like(g);
  copy_into(dense, g);
  set_gradient(p, dense);
  return dense;
}

std::vector<kernels::GradientPart> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<kernels::GradientPart> parts;
  parts.reserve(parameters.size());
  for (const Tensor& p : parameters) {
    Tensor g = dense_gradient(p);
    if (!g.defined()) continue;
    check(parts.empty() || parts.front().gradient.device() == g.device(), "clip: gradients lie on ",
          parts.empty() ? g.device() : parts.front().gradient.device(), " and on ", g.device());
    parts.push_back({std::move(g)});
  }
  return parts;
}

double norm_of(const std::vector<kernels::GradientPart>& parts, int64_t blocks) {
  if (blocks == 0) return 0;
  const Device device = parts.front().gradient.device();
  const Tensor partial = empty({blocks}, {DType::f64, device});
  kernels::sum_squares.on(device, parts, partial);
  double sum = 0;
  for (double s : partial.to_vector<double>()) sum += s;
  return std::sqrt(sum);
}

}  // namespace

double gradient_norm(const std::vector<Tensor>& parameters) {
  auto parts = gradients_of(parameters);
  const int64_t blocks = kernels::number_blocks(parts);
  return norm_of(parts, blocks);
}

double clip_factor(double norm, double max_norm) {
  check(max_norm > 0, "clip_grad_norm: max_norm is ", max_norm, ", expected more than 0");
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
  auto parts = gradients_of(parameters);
  const int64_t blocks = kernels::number_blocks(parts);
  const double norm = norm_of(parts, blocks), factor = clip_factor(norm, max_norm);
  if (factor != 1 && blocks > 0) kernels::scale.on(parts.front().gradient.device(), parts, blocks, factor);
  return norm;
}

void clip_grad_value(const std::vector<Tensor>& parameters, double limit) {
  check(limit >= 0, "clip_grad_value: limit is ", limit, ", expected a number from 0");
  auto parts = gradients_of(parameters);
  const int64_t blocks = kernels::number_blocks(parts);
  if (blocks > 0) kernels::clamp.on(parts.front().gradient.device(), parts, blocks, limit);
}

void add_l2(const std::vector<Tensor>& parameters, double weight_decay) {
  check(weight_decay >= 0 && std::isfinite(weight_decay), "add_l2: weight_decay is ", weight_decay,
        ", expected a finite number from 0");
  std::vector<kernels::Update> updates;  // SGD on the gradients, driven by the weights
  for (const Tensor& p : parameters)
    if (const Tensor g = dense_gradient(p); g.defined()) {
      check(p.is_contiguous(), "add_l2: a parameter has shape ", p.shape(), " and strides ", p.strides(),
            ", expected a contiguous one");
      updates.push_back({.gradient = p, .parameter = g, .state = {}, .rule = rules::Sgd{-weight_decay}});
    }
  const int64_t blocks = kernels::number_blocks(updates);
  if (blocks > 0) kernels::update.on(updates.front().gradient.device(), updates, blocks);
}

}  // namespace isonorm::optim
