// Slots of convolution on the CPU without a matrix of windows. Other devices use core/kernels/conv.h. All tensors are
// contiguous, of one dtype f32 or f64.
#pragma once

#include "core/kernels/kernel.h"
#include "core/kernels/window.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I>
void convolve(const WindowShape& shape, const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
              bool transposed);
template <Isa I> void filter_gradient(const WindowShape& shape, const Tensor& dw, const Tensor& dy, const Tensor& x);
}  // namespace cpu

// y [images, out_h, out_w, out] = bias [out], if it is defined, + the convolution of x with weight [out, kernel_h,
// kernel_w, channels / groups]. `transposed`: convolves with the adjoint of weight [channels, kernel_h, kernel_w, out /
// groups], its places in reverse order.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>
    convolve{"conv2d", []<Isa I>() { return &cpu::convolve<I>; },
             [](const WindowShape& s, const Tensor& y, const Tensor&, const Tensor&, const Tensor&, bool) {
               return 2 * y.numel() * s.depth();
             }};
// dw [out, kernel_h, kernel_w, channels / groups] += the sum over windows of dy [images, out_h, out_w, out] times the
// pixels of x in the window.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&, const Tensor&)> filter_gradient{
    "conv2d_weight_gradient", []<Isa I>() { return &cpu::filter_gradient<I>; },
    [](const WindowShape& s, const Tensor&, const Tensor& dy, const Tensor&) { return 2 * dy.numel() * s.depth(); }};

}  // namespace isonorm::kernels
