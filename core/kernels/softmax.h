// Slots of softmax over the last dimension of contiguous [rows, width] tensors.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void softmax(const Tensor& out, const Tensor& x, bool log);
template <Isa I> void softmax_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log);
}  // namespace cpu

// out = e^(x - m) / sum e^(x - m) with m the row's maximum; if `log`, the logarithm of that.
inline constinit Kernel<void(const Tensor&, const Tensor&, bool)> softmax{"softmax",
                                                                          []<Isa I>() { return &cpu::softmax<I>; }};
// From the result y: dx = y (g - sum g y); if `log`, dx = g - e^y sum g.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, bool)> softmax_backward{
    "softmax_backward", []<Isa I>() { return &cpu::softmax_backward<I>; }};

}  // namespace isonorm::kernels
