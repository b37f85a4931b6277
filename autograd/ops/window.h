// What convolution and pooling share: sizes in two directions, and the check that windows fit images.
#pragma once

#include "core/kernels/window.h"
#include "core/tensor.h"

namespace isonorm {

// A number for the height and one for the width; one number stands for both.
struct Size2 {
  int64_t height, width;
  constexpr Size2(int64_t both) : height(both), width(both) {}
  constexpr Size2(int64_t height, int64_t width) : height(height), width(width) {}
  bool operator==(const Size2&) const = default;
  friend void append_text(std::string& s, const Size2& z) { s += text(z.height, " x ", z.width); }
};

namespace detail {

// Windows of size `kernel` over x [images, height, width, channels]; floor((size + 2 padding - kernel) / stride) + 1 of
// them in each direction. Throws, in the name of `op`, where the rank is not 4, x has no pixels, a size or stride is below 1 or a padding
// below 0, the window is larger than the padded image, or the outputs pass int64.
kernels::WindowShape window_shape(const char* op, const Tensor& x, Size2 kernel, Size2 stride, Size2 padding);

}  // namespace detail
}  // namespace isonorm
