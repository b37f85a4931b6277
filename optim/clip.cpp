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

using Parts = std::vector<kernels::GradientPart>;

void add_part(Parts& parts, Tensor x) {
  check(parts.empty() || parts.front().gradient.device() == x.device(), "clip: gradients lie on ",
        parts.empty() ? x.device() : parts.front().gradient.device(), " and on ", x.device());
  parts.push_back({std::move(x)});
}

Parts gradients_of(const std::vector<Tensor>& parameters) {
  Parts parts;
  parts.reserve(parameters.size());
  for (const Tensor& p : parameters)
    if (Tensor g = dense_gradient(p); g.defined()) add_part(parts, std::move(g));
  return parts;
}

// The sum of squares of every block.
std::vector<double> square_sums(const Parts& parts, int64_t blocks) {
  if (blocks == 0) return {};
  const Device device = parts.front().gradient.device();
  const Tensor partial = empty({blocks}, {DType::f64, device});
  kernels::sum_squares.on(device, parts, partial);
  return partial.to_vector<double>();
}

double norm_of(const Parts& parts, int64_t blocks) {
  double sum = 0;
  for (double s : square_sums(parts, blocks)) sum += s;
  return std::sqrt(sum);
}

}  // namespace

std::vector<double> norms_of(const std::vector<Tensor>& tensors) {
  Parts parts;
  for (const Tensor& x : tensors) add_part(parts, x);
  const int64_t blocks = kernels::number_blocks(parts);
  const std::vector<double> sums = square_sums(parts, blocks);
  std::vector<double> norms;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t end = i + 1 < parts.size() ? parts[i + 1].first_block : blocks;
    double sum = 0;
    for (int64_t b = parts[i].first_block; b < end; ++b) sum += sums[b];
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

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
