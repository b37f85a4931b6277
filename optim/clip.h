// Limits on gradients, and L2 regularization that the limits see. All work in place on the gradients of the parameters;
// parameters without a gradient are skipped.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace isonorm::optim {

// sqrt(sum of g^2) over every parameter's gradient, summed in f64 in an order that does not depend on the number of
// threads. 0 if there is no gradient. Gradients of f32, f64 or bf16 on one device.
double grad_norm(const std::vector<Tensor>& parameters);

// min(1, max_norm / (norm + 1e-6)), the factor that brings gradients with this norm under max_norm; NaN if norm is NaN.
// opt.step(clip_factor(grad_norm(p), max_norm)) clips without a separate pass. Throws if max_norm is not above 0.
double clip_factor(double norm, double max_norm);

// grad_norm() and clip_factor() as tensors with one f64 on the gradients' device, so that no host waits for them:
// opt.step_scaled(clip_numbers(p, 1).factor).
struct ClipNumbers {
  Tensor norm, factor;
};
ClipNumbers clip_numbers(const std::vector<Tensor>& parameters, double max_norm);

// Multiplies all gradients by clip_factor() of their norm; returns the norm before that
// (torch.nn.utils.clip_grad_norm_, L2). Pascanu et al., "On the difficulty of training recurrent neural networks", ICML
// 2013.
double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm);

// Clamps every entry of the gradients to [-limit, limit]; NaN stays. Throws if limit is negative or NaN.
void clip_grad_value(const std::vector<Tensor>& parameters, double limit);

// gradient += weight_decay w: the gradient of loss + weight_decay/2 |w|^2. Use it if the limits must include the L2
// term; an optimizer's own weight_decay is applied after them:
//   add_l2(p, 0.01);
//   opt.step(clip_factor(grad_norm(p), 1.0));
// Throws if weight_decay is negative or not finite.
void add_l2(const std::vector<Tensor>& parameters, double weight_decay);

}  // namespace isonorm::optim
