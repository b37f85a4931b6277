// Slots of optimizer steps and of what is done to all gradients at once. Each goes over a list of tensors in one pass,
// in parallel over fixed blocks of elements. All tensors are contiguous; state has the accumulation type of its
// parameter (f32 for bf16).
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/kernel.h"
#include "core/round_up.h"
#include "core/tensor.h"
#include "core/update_rules.h"

namespace isonorm::kernels {

inline constexpr int64_t kUpdateBlock = 16384;  // elements

struct GradientPart {
  Tensor gradient;
  int64_t first_block = 0;  // position of its first block among those of the whole list; see number_blocks()

  friend int64_t tensor_bytes(const GradientPart& p) { return bytes_of_all(p.gradient); }
};

// One parameter's step by an element-wise rule.
struct Update {
  Tensor gradient;
  int64_t first_block = 0;
  Tensor parameter;
  std::array<Tensor, 3> state;  // as many as the rule has
  double gradient_scale = 1;    // the gradient is multiplied by it first
  double l2 = 0;                // coupled weight decay: added to the gradient as l2 w
  double keep = 1;              // decoupled weight decay: w is multiplied by it first
  UpdateRule rule;

  friend int64_t tensor_bytes(const Update& u) {
    return bytes_of_all(u.gradient, u.parameter, u.state[0], u.state[1], u.state[2]);
  }
};

// Gives every item its first block; returns the number of blocks.
template <class Item> int64_t number_blocks(std::vector<Item>& items) {
  int64_t blocks = 0;
  for (Item& item : items) {
    item.first_block = blocks;
    blocks += ceil_div(item.gradient.numel(), kUpdateBlock);
  }
  return blocks;
}

namespace cpu {
template <Isa I> void update(std::span<const Update> updates, int64_t blocks);
template <Isa I> void sum_squares(std::span<const GradientPart> parts, const Tensor& partial);
template <Isa I> void scale(std::span<const GradientPart> parts, int64_t blocks, double factor);
template <Isa I> void clamp(std::span<const GradientPart> parts, int64_t blocks, double limit);
}  // namespace cpu

// w = rule.step(keep w, gradient_scale gradient + l2 w, state)
inline constinit Kernel<void(std::span<const Update>, int64_t)> update{"update",
                                                                       []<Isa I>() { return &cpu::update<I>; }};
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
