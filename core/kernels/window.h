// Windows that pass over images: what convolution and pooling have in common.
#pragma once

#include <cstdint>

#include "core/formulas/hd.h"

namespace isonorm::kernels {

// Images [images, height, width, channels], contiguous. The window of output (image, y, x) has the pixels
// (y stride_h - pad_h + i, x stride_w - pad_w + j), 0 <= i < kernel_h, 0 <= j < kernel_w; those outside of the image are
// padding. Outputs are counted as rows of [images, out_h, out_w].
struct WindowShape {
  int64_t images, height, width, channels;
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  int64_t out_h, out_w;
  int64_t groups = 1;  // of channels that a convolution keeps apart

  ISO_HD int64_t rows() const { return images * out_h * out_w; }
  ISO_HD int64_t places() const { return kernel_h * kernel_w; }
  ISO_HD int64_t depth() const { return places() * (channels / groups); }  // what one group's output sums over
};

}  // namespace isonorm::kernels
