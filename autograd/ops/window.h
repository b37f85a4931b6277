// Shared by convolution and pooling: sizes in two directions, and the check that windows fit images.
#pragma once

#include "core/kernels/window.h"
#include "core/tensor.h"

namespace isonorm {

// A number for the height and one for the width; a single number is used for both.
struct Size2 {
  int64_t height, width;
  constexpr Size2(int64_t both) : height(both), width(both) {}
  constexpr Size2(int64_t height, int64_t width) : height(height), width(width) {}
  bool operator==(const Size2&) const = default;
  friend void append_text(std::string& s, const Size2& z) { s += text(z.height, " x ", z.width); }
};

namespace detail {

// How windows pass over images.
struct Steps {
  Size2 stride, padding, dilation;
  bool ceil = false;
};

// Throws, in the name of `op`, if x is not [images, height, width, channels] with pixels and a floating dtype, if a
// size, stride or dilation is below 1, or if a padding is below 0.
void check_windows(const char* op, const Tensor& x, Size2 kernel, const Steps& steps);

// Windows of size `kernel` over x [images, height, width, channels]. With reach = dilation (kernel - 1) + 1 a direction
// has floor((size + 2 padding - reach) / stride) + 1 windows; `ceil` rounds the quotient up and leaves out a last
// window that would begin after the image. Throws like check_windows(), and if no window fits the padded image or the
// outputs overflow int64.
kernels::WindowShape window_shape(const char* op, const Tensor& x, Size2 kernel, const Steps& steps);

}  // namespace detail
}  // namespace isonorm
