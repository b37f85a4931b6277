// Slots of optimizer steps and of what is done to all gradients at once. Each goes over a list of tensors in one pass,
// in parallel over fixed blocks of elements. All tensors are contiguous; state has the accumulation type of its
// parameter (f32 for bf16).
#pragma once

#include <span>
#include <vector>

#include "core/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

inline constexpr int64_t kUpdateBlock = 16384;  // elements

struct GradientPart {
  Tensor gradient;
  int64_t first_block = 0;  // position of its first block among those of the whole list; see number_blocks()
};

struct SgdUpdate {
  Tensor gradient;
  int64_t first_block = 0;
  Tensor parameter;
  Tensor momentum_buffer;  // undefined without momentum
  double lr, momentum, weight_decay, gradient_scale;
  bool nesterov;
};

struct AdamUpdate {
  Tensor gradient;
  int64_t first_block = 0;
  Tensor parameter, exp_avg, exp_avg_sq;
  double beta1, beta2, eps;
  double l2;              // coupled weight decay: added to the gradient as l2 w
  double keep;            // decoupled weight decay: w is multiplied by it first
  double step_size;       // lr / (1 - beta1^t)
  double root_scale;      // 1 / sqrt(1 - beta2^t)
  double gradient_scale;  // the gradient is multiplied by it first
};

// Gives every item its first block; returns the number of blocks.
template <class Item> int64_t number_blocks(std::vector<Item>& items) {
  int64_t blocks = 0;
  for (Item& item : items) {
    item.first_block = blocks;
    blocks += (item.gradient.numel() + kUpdateBlock - 1) / kUpdateBlock;
  }
  return blocks;
}

namespace cpu {
template <Isa I> void sgd(std::span<const SgdUpdate> updates, int64_t blocks);
template <Isa I> void adam(std::span<const AdamUpdate> updates, int64_t blocks);
template <Isa I> void sum_squares(std::span<const GradientPart> parts, const Tensor& partial);
template <Isa I> void scale(std::span<const GradientPart> parts, int64_t blocks, double factor);
template <Isa I> void clamp(std::span<const GradientPart> parts, int64_t blocks, double limit);
}  // namespace cpu

// g = gradient_scale gradient + weight_decay w;  b = momentum b + g;  w -= lr (nesterov ? g + momentum b : b)
inline constinit Kernel<void(std::span<const SgdUpdate>, int64_t)> sgd{"sgd", []<Isa I>() { return &cpu::sgd<I>; }};
// g = gradient_scale gradient + l2 w;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;
// w = keep w - step_size m / (root_scale sqrt(v) + eps)
inline constinit Kernel<void(std::span<const AdamUpdate>, int64_t)> adam{"adam", []<Isa I>() { return &cpu::adam<I>; }};
// partial[b] (f64) = sum of the squares of block b
inline constinit Kernel<void(std::span<const GradientPart>, const Tensor&)> sum_squares{
    "sum_squares", []<Isa I>() { return &cpu::sum_squares<I>; }};
// gradient *= factor
inline constinit Kernel<void(std::span<const GradientPart>, int64_t, double)> scale{
    "scale", []<Isa I>() { return &cpu::scale<I>; }};
// gradient = min(max(gradient, -limit), limit), NaN stays
inline constinit Kernel<void(std::span<const GradientPart>, int64_t, double)> clamp{
    "clamp", []<Isa I>() { return &cpu::clamp<I>; }};

}  // namespace isonorm::kernels
