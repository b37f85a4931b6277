// Pooling of images. x [images, height, width, channels] of a floating dtype -> [images, out height, out width, channels]
// with floor((size + 2 padding - reach) / stride) + 1 outputs in a direction, reach = dilation (window - 1) + 1. Both throw
// on another rank or dtype, images without pixels, a window, stride or dilation below 1, a padding below 0 or above half
// the reach, and a window larger than the padded image. The mean over whole images is mean(x, {1, 2}).
#pragma once

#include <optional>

#include "autograd/ops/window.h"

namespace isonorm {

struct Pool2dOptions {
  std::optional<Size2> stride = {};  // by default the window: windows lie side by side
  Size2 padding = 0;                 // on each side
  Size2 dilation = 1;                // pixels from one place of the window to the next
  bool ceil = false;  // the quotient is rounded up: a last window may end behind the padding, but begins in the image
  bool count_padding = true;  // of means: zeros of the padding count
};

// The largest element of each window, of those inside the image, -inf where there is none; NaN counts as largest. The
// gradient goes to the first of equal ones. Throws on windows of over 256 places, too.
Tensor max_pool2d(const Tensor& x, Size2 window, Pool2dOptions options = {});

// The mean of each window; what lies behind the padding never counts. NaN where nothing counts.
Tensor avg_pool2d(const Tensor& x, Size2 window, Pool2dOptions options = {});

// Means of windows that are chosen for a size of the output, like PyTorch's adaptive_avg_pool2d: in a direction of s
// pixels, output i of o is the mean of pixels floor(i s / o), ..., ceil((i + 1) s / o) - 1. Windows may overlap, and
// the output may be larger than the image. x [images, height, width, channels] of a floating dtype -> [images,
// size.height, size.width, channels]. Throws on another rank or dtype, images without pixels, and a size below 1.
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size);

}  // namespace isonorm
