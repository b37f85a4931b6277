// Slots of optimizer steps and of what is done to all gradients at once. Each goes over a list of tensors in one pass.
// All tensors are contiguous; state has the accumulation type of its parameter (f32 for bf16).
#pragma once

#include <array>
#include <span>

#include "core/formulas/update_rules.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// One parameter's step by an element-wise rule.
struct Update {
  Tensor gradient;
  Tensor parameter;
  std::array<Tensor, 3> state;  // as many as the rule has
  double gradient_scale = 1;    // the gradient is multiplied by it first
  double l2 = 0;                // coupled weight decay: added to the gradient as l2 w
  double keep = 1;              // decoupled weight decay: w is multiplied by it first
  UpdateRule rule;

  static auto tensors(auto& s) { return std::tie(s.gradient, s.parameter, s.state[0], s.state[1], s.state[2]); }
};

namespace cpu {
template <Isa I> void update(std::span<const Update> updates);
template <Isa I> void sum_squares(std::span<const Tensor> tensors, const Tensor& sums);
template <Isa I> void scale(std::span<const Tensor> tensors, double factor);
template <Isa I> void clamp(std::span<const Tensor> tensors, double limit);
}  // namespace cpu

// w = rule.step(keep w, gradient_scale gradient + l2 w, state)
inline constinit Kernel<void(std::span<const Update>)> update{"update", []<Isa I>() { return &cpu::update<I>; }};
// sums[i] (f64) = sum of the squares of tensor i.
inline constinit Kernel<void(std::span<const Tensor>, const Tensor&)> sum_squares{
    "sum_squares", []<Isa I>() { return &cpu::sum_squares<I>; }};
// Each is multiplied by the factor.
inline constinit Kernel<void(std::span<const Tensor>, double)> scale{"scale", []<Isa I>() { return &cpu::scale<I>; }};
// x = min(max(x, -limit), limit), NaN stays.
inline constinit Kernel<void(std::span<const Tensor>, double)> clamp{"clamp", []<Isa I>() { return &cpu::clamp<I>; }};

}  // namespace isonorm::kernels
