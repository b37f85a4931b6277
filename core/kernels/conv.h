// Slots that turn a convolution into matrix products (Chellapilla et al., "High Performance Convolutional Neural
// Networks for Document Processing", 2006). They copy windows of images to rows of a matrix, some of them at a time.
#pragma once

#include "core/kernels/kernel.h"
#include "core/kernels/window.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void im2col(const WindowShape& shape, int64_t first, const Tensor& columns, const Tensor& x);
template <Isa I> void col2im(const WindowShape& shape, int64_t first, const Tensor& dx, const Tensor& columns);
}  // namespace cpu

// columns [groups, rows, depth] = the windows [first, first + rows) of x. Element (i, j, c) of a group's row is pixel
// (i, j) of the window in the group's channel c, 0 in the padding. Both contiguous, of one floating dtype.
inline constinit Kernel<void(const WindowShape&, int64_t, const Tensor&, const Tensor&)> im2col{
    "im2col", []<Isa I>() { return &cpu::im2col<I>; }};
// The transposed map: adds every element of `columns` to the pixel of dx that im2col would have read it from. dx
// [images, height, width, channels] has the accumulation dtype and is contiguous.
inline constinit Kernel<void(const WindowShape&, int64_t, const Tensor&, const Tensor&)> col2im{
    "col2im", []<Isa I>() { return &cpu::col2im<I>; }};

}  // namespace isonorm::kernels
