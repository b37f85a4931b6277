// Kernel slots (kernel.h) of a Transformer block's feed-forward layer, which is computed a few rows at a time:
// y = gelu(x W1^T + b1) W2^T + b2.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// The weights: w1 [hidden, in], w2 [out, hidden] and their biases, undefined if there is none.
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

// y [rows, out] from x [rows, in]. h [rows, hidden] receives x W1^T + b1, unless it is undefined. All are contiguous,
// of the same dtype f32, f64 or bf16; or h is bf16 and the others are f32. No dimension is 0.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const MlpWeights&, bool)> mlp_forward{
    "mlp", []<Isa I>() { return &cpu::mlp_forward<I>; },
    [](const Tensor& y, const Tensor&, const Tensor& x, const MlpWeights& w, bool) {
      return 2 * w.w1.size(0) * (x.numel() + y.numel());
    }};

// dx [rows, in], undefined if not wanted. h: the forward's h, or undefined if dh holds it; the CPU takes h only in bf16
// with the other tensors in f32. dh receives the gradient of h, and activated [rows, hidden] receives gelu(h), for the
// gradient of W2. On other devices activated may be h.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             const MlpWeights&, bool)>
    mlp_backward{
        "mlp_backward", []<Isa I>() { return &cpu::mlp_backward<I>; },
        [](const Tensor& dx, const Tensor&, const Tensor&, const Tensor&, const Tensor& dy, const MlpWeights& w, bool) {
          return 2 * w.w1.size(0) * ((dx.defined() ? dx.numel() : 0) + dy.numel());
        }};

}  // namespace isonorm::kernels
