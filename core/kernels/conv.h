// Slots of a convolution, and those that turn it into products of matrices (Chellapilla et al., "High Performance Convolutional Neural
// Networks for Document Processing", 2006): windows of images as rows, some of them at a time.
#pragma once

#include "core/kernels/kernel.h"
#include "core/kernels/window.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void im2col(const WindowShape& shape, int64_t first, const Tensor& columns, const Tensor& x);
template <Isa I> void col2im(const WindowShape& shape, int64_t first, const Tensor& dx, const Tensor& columns);
template <Isa I>
void convolve(const WindowShape& shape, const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
              bool transposed);
template <Isa I> void filter_gradient(const WindowShape& shape, const Tensor& dw, const Tensor& dy, const Tensor& x);
}  // namespace cpu

// columns [groups, rows, depth] = the windows [first, first + rows) of x: element (i, j, c) of a group's row is pixel
// (i, j) of the window in its c-th channel, 0 in the padding. Both contiguous, of one floating dtype.
inline constinit Kernel<void(const WindowShape&, int64_t, const Tensor&, const Tensor&)> im2col{
    "im2col", []<Isa I>() { return &cpu::im2col<I>; }};
// The transposed map: adds every element of `columns` to the pixel of dx that im2col would have read it from. dx
// [images, height, width, channels] of the accumulation dtype, contiguous.
inline constinit Kernel<void(const WindowShape&, int64_t, const Tensor&, const Tensor&)> col2im{
    "col2im", []<Isa I>() { return &cpu::col2im<I>; }};

// The CPU's way, without such a matrix; other devices have none of it. All contiguous, of one dtype f32 or f64.
// y [images, out_h, out_w, out] = bias [out], where it is defined, + the convolution of x with weight [out, kernel_h,
// kernel_w, channels / groups]. `transposed`: with the adjoint of weight [channels, kernel_h, kernel_w, out / groups],
// its places in reverse order.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>
    convolve{"conv2d", []<Isa I>() { return &cpu::convolve<I>; },
             [](const WindowShape& s, const Tensor& y, const Tensor&, const Tensor&, const Tensor&, bool) {
               return 2 * y.numel() * s.depth();
             }};
// dw [out, kernel_h, kernel_w, channels / groups] += the sums over windows of dy [images, out_h, out_w, out] times what
// they see of x.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&, const Tensor&)> filter_gradient{
    "conv2d_weight_gradient", []<Isa I>() { return &cpu::filter_gradient<I>; },
    [](const WindowShape& s, const Tensor&, const Tensor& dy, const Tensor&) { return 2 * dy.numel() * s.depth(); }};

}  // namespace isonorm::kernels
