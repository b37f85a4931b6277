// Slots of max and average pooling over windows of images, by channel.
#pragma once

#include "core/kernels/kernel.h"
#include "core/kernels/window.h"
#include "core/tensor.h"

namespace isonorm::kernels {

inline constexpr int64_t kMostPlaces = 256;  // the largest window of a max pool: a place is stored in a byte

namespace cpu {
template <Isa I> void max_pool(const WindowShape& shape, const Tensor& y, const Tensor& place, const Tensor& x);
template <Isa I>
void max_pool_backward(const WindowShape& shape, const Tensor& dx, const Tensor& dy, const Tensor& place);
template <Isa I> void avg_pool(const WindowShape& shape, const Tensor& y, const Tensor& x);
template <Isa I> void avg_pool_backward(const WindowShape& shape, const Tensor& dx, const Tensor& dy);
}  // namespace cpu

// y [images, out_h, out_w, channels] = the first largest element of a window; NaN counts as largest. -inf if no pixel
// of the window is in the image. place (u8, like y) = i kernel_w + j of that element; undefined if not wanted.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&, const Tensor&)> max_pool{
    "max_pool2d", []<Isa I>() { return &cpu::max_pool<I>; }};
// dx = for each pixel, the sum of dy over the windows whose largest element it is.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&, const Tensor&)> max_pool_backward{
    "max_pool2d_backward", []<Isa I>() { return &cpu::max_pool_backward<I>; }};

// y = the sum over a window, with zeros for padding, divided by the number of its places that count.
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&)> avg_pool{
    "avg_pool2d", []<Isa I>() { return &cpu::avg_pool<I>; }};
inline constinit Kernel<void(const WindowShape&, const Tensor&, const Tensor&)> avg_pool_backward{
    "avg_pool2d_backward", []<Isa I>() { return &cpu::avg_pool_backward<I>; }};

}  // namespace isonorm::kernels
