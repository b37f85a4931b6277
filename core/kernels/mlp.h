// Slots of the feed-forward half of a Transformer block, rows by rows: y = gelu(x W1^T + b1) W2^T + b2.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// The weights of a call: w1 [hidden, in], w2 [out, hidden] and their biases, undefined where there is none.
struct MlpWeights {
  Tensor w1, b1, w2, b2;
  static auto tensors(auto& s) { return std::tie(s.w1, s.b1, s.w2, s.b2); }
};

namespace cpu {
template <Isa I>
void mlp_forward(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& weights, bool tanh_form);
template <Isa I>
void mlp_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const MlpWeights& weights, bool tanh_form);
}  // namespace cpu

// y [rows, out] from x [rows, in]; h [rows, hidden] becomes x W1^T + b1, or is undefined. All contiguous, of one dtype
// f32, f64 or, bf16, or h of bf16 and the rest of f32; no dimension 0.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const MlpWeights&, bool)> mlp_forward{
    "mlp", []<Isa I>() { return &cpu::mlp_forward<I>; },
    [](const Tensor& y, const Tensor&, const Tensor& x, const MlpWeights& w, bool) {
      return 2 * w.w1.size(0) * (x.numel() + y.numel());
    }};

// dx [rows, in], undefined where nobody wants it. h is what the forward left, of bf16 on the CPU; undefined where dh
// holds it, which becomes its gradient either way. activated [rows, hidden] becomes gelu(h), for the gradient of W2; on
// other devices it may be h.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             const MlpWeights&, bool)>
    mlp_backward{
        "mlp_backward", []<Isa I>() { return &cpu::mlp_backward<I>; },
        [](const Tensor& dx, const Tensor&, const Tensor&, const Tensor&, const Tensor& dy, const MlpWeights& w, bool) {
          return 2 * w.w1.size(0) * ((dx.defined() ? dx.numel() : 0) + dy.numel());
        }};

}  // namespace isonorm::kernels
