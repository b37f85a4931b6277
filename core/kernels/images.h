// Slots for images: convolution, pooling and resizing, and the windows that they look through.
#pragma once

#include <cstdint>

#include "core/formulas/hd.h"
#include "core/formulas/round_up.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// The places [begin, end) of a window.
struct Places {
  int64_t begin, end;
};
// `count` places start at pixel `at` with a distance of `apart`: the places whose pixels are in [low, high).
ISO_HD constexpr Places places_between(int64_t at, int64_t count, int64_t apart, int64_t low, int64_t high) {
  const auto before = [&](int64_t pixel) {
    const int64_t n = pixel <= at ? 0 : apart == 1 ? pixel - at : ceil_div(pixel - at, apart);
    return n < count ? n : count;
  };
  return {before(low), before(high)};
}
// The number of the place that is `distance` pixels after the first one; -1 if there is none.
ISO_HD constexpr int64_t place_at(int64_t distance, int64_t apart) {
  return apart == 1 ? distance : distance % apart == 0 ? distance / apart : -1;
}

// Images [images, height, width, channels], contiguous. The window of output (image, y, x) has the pixels (y stride_h -
// pad_h + i dilation_h, x stride_w - pad_w + j dilation_w), 0 <= i < kernel_h, 0 <= j < kernel_w; pixels outside of the
// image are padding. Outputs are numbered as rows of [images, out_h, out_w].
struct WindowShape {
  int64_t images, height, width, channels;
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  int64_t out_h, out_w;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;          // channel groups of a grouped convolution
  bool padding_counts = true;  // in a mean, padding counts as zeros

  ISO_HD int64_t rows() const { return images * out_h * out_w; }
  ISO_HD int64_t places() const { return kernel_h * kernel_w; }
  ISO_HD int64_t reach_h() const { return (kernel_h - 1) * dilation_h + 1; }  // pixels from the first place to the last
  ISO_HD int64_t reach_w() const { return (kernel_w - 1) * dilation_w + 1; }
  // The number of places that a mean divides by, for the window whose first place is (y, x). Places beyond the padding
  // never count.
  ISO_HD int64_t counted(int64_t y, int64_t x) const {
    const int64_t h = padding_counts ? pad_h : 0, w = padding_counts ? pad_w : 0;
    const Places i = places_between(y, kernel_h, dilation_h, -h, height + h),
                 j = places_between(x, kernel_w, dilation_w, -w, width + w);
    return (i.end - i.begin) * (j.end - j.begin);
  }
  ISO_HD int64_t depth() const { return places() * (channels / groups); }  // elements in a group's sum
};

// Slots that turn a convolution into matrix products (Chellapilla et al., "High Performance Convolutional Neural
// Networks for Document Processing", 2006). They copy windows of images to rows of a matrix, some at a time.

namespace cpu {
template <Isa I> void im2col(const WindowShape& shape, int64_t first, const Tensor& columns, const Tensor& x);
template <Isa I> void col2im(const WindowShape& shape, int64_t first, const Tensor& dx, const Tensor& columns);
}  // namespace cpu

// columns [groups, rows, depth] = the windows [first, first + rows) of x. Element (i, j, c) of a group's row is pixel
// (i, j) of the window in the group's channel c, 0 in the padding. Both contiguous, of the same floating dtype.
inline constinit Kernel<void(const WindowShape&, int64_t, const Tensor&, const Tensor&)> im2col{
    "im2col", []<Isa I>() { return &cpu::im2col<I>; }};
// The transposed map: adds every element of `columns` to the pixel of dx that im2col would have read it from. dx
// [images, height, width, channels] has the accumulation dtype and is contiguous.
inline constinit Kernel<void(const WindowShape&, int64_t, const Tensor&, const Tensor&)> col2im{
    "col2im", []<Isa I>() { return &cpu::col2im<I>; }};

// Kernel slots (kernel.h) of convolution on the CPU without a matrix of windows. Other devices use im2col and col2im.
// All tensors are contiguous, of the same dtype f32 or f64.

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

// Kernel slots (kernel.h) of max and average pooling over windows of images, by channel.

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

// The slot that resizes images on the CPU. Other devices compose resizing from index kernels
// (autograd/ops/interpolate.cpp).

// A linear map along one direction, as a sparse matrix by rows: result i is the sum of weights[t] x[ids[t]] over t from
// starts[i] to starts[i + 1] - 1. starts i64 [results + 1], ids i64 and weights f64 [starts[results]].
struct Taps {
  Tensor starts, ids, weights;
  static auto tensors(auto& t) { return std::tie(t.starts, t.ids, t.weights); }
};

namespace cpu {
template <Isa I> void resample(const Tensor& y, const Tensor& x, const Taps& rows, const Taps& columns);
}  // namespace cpu

// y [images, results of rows, results of columns, channels] = x [images, height, width, channels] mapped along the
// height, then along the width. Contiguous, f32 or f64. ids must be inside of x.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Taps&, const Taps&)> resample{
    "interpolate", []<Isa I>() { return &cpu::resample<I>; }};

}  // namespace isonorm::kernels
