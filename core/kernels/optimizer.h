// Kernel slots (kernel.h) of optimizer steps and of operations on all gradients. Each processes a list of tensors in
// one pass. All tensors are contiguous; state has the accumulation type of its parameter (f32 for bf16).
#pragma once

#include <array>
#include <span>

#include "core/formulas/update_rules.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// One parameter's step by an element-wise update rule.
struct Update {
  Tensor gradient;
  Tensor parameter;
  std::array<Tensor, 3> state;  // the tensors that the rule uses
  double gradient_scale = 1;    // multiplies the gradient first
  double l2 = 0;                // coupled weight decay: adds l2 w to the gradient
  double keep = 1;              // decoupled weight decay: multiplies w first
  UpdateRule rule;
  // Factors that were computed on the tensors' device; the host does not wait for them. f64, one element; undefined: 1.
  Tensor gradient_factor = {};  // multiplies gradient_scale
  Tensor trust = {};            // trust ratio; multiplies gradient_scale, l2 and the rate of rules::Along

  static auto tensors(auto& s) {
    return std::tie(s.gradient, s.parameter, s.state[0], s.state[1], s.state[2], s.gradient_factor, s.trust);
  }
};

// Trust ratio of a tensor: coefficient |w| / (|g| + weight_decay |w|), with |g| multiplied by gradient_scale. It is 1
// if `adapt` is false, or |w| or |g| is 0 (You et al., 1708.03888, section 3.1, and 1904.00962, section 3).
struct TrustRatio {
  bool adapt;
  double coefficient, weight_decay, gradient_scale;
};

namespace cpu {
template <Isa I> void update(std::span<const Update> updates);
template <Isa I> void sum_squares(std::span<const Tensor> tensors, const Tensor& sums);
template <Isa I> void scale(std::span<const Tensor> tensors, double factor);
template <Isa I> void clamp(std::span<const Tensor> tensors, double limit);
template <Isa I> void clip_numbers(const Tensor& out, const Tensor& sums, double max_norm);
template <Isa I>
void trust_ratios(const Tensor& out, const Tensor& sums, std::span<const TrustRatio> ratios,
                  const Tensor& gradient_factor);
}  // namespace cpu

// w = rule.step(keep w, trust (gradient_factor gradient_scale gradient + l2 w), state)
inline constinit Kernel<void(std::span<const Update>)> update{
    "update", []<Isa I>() { return &cpu::update<I>; }, nullptr,
    [](std::span<const Update> updates) {
      int64_t written = 0;
      for (const Update& u : updates) {
        const bool writes = std::visit([](const auto& rule) { return rule.kWrites; }, u.rule);
        written += bytes_of_all(u.state[0], u.state[1], u.state[2]) + (writes ? tensor_bytes(u.parameter) : 0);
      }
      return written;
    }};
// sums[i] (f64) = sum of the squares of tensor i.
inline constinit Kernel<void(std::span<const Tensor>, const Tensor&)> sum_squares{
    "sum_squares", []<Isa I>() { return &cpu::sum_squares<I>; }};
// out [2] = (norm, min(1, max_norm / (norm + 1e-6))), where norm is the root of the sum of sums [n]; f64. NaN stays
// NaN.
inline constinit Kernel<void(const Tensor&, const Tensor&, double)> clip_numbers{
    "clip_numbers", []<Isa I>() { return &cpu::clip_numbers<I>; }};
// out [n] = the trust ratios of n tensors. sums [2n] holds the sum_squares of each weight and its gradient,
// alternating; f64. gradient_factor (f64, one element), if defined, also multiplies the gradient's norm.
inline constinit Kernel<void(const Tensor&, const Tensor&, std::span<const TrustRatio>, const Tensor&)> trust_ratios{
    "trust_ratios", []<Isa I>() { return &cpu::trust_ratios<I>; }};
// Multiplies each tensor by the factor.
inline constinit Kernel<void(std::span<const Tensor>, double)> scale{
    "scale", []<Isa I>() { return &cpu::scale<I>; }, nullptr,
    [](std::span<const Tensor> tensors, double) { return bytes_of_all(tensors); }};
// x = min(max(x, -limit), limit). NaN stays NaN.
inline constinit Kernel<void(std::span<const Tensor>, double)> clamp{
    "clamp", []<Isa I>() { return &cpu::clamp<I>; }, nullptr,
    [](std::span<const Tensor> tensors, double) { return bytes_of_all(tensors); }};

}  // namespace isonorm::kernels
