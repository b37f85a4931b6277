// Pooling of images. x [images, height, width, channels] of a floating dtype -> [images, out height, out width,
// channels] with floor((size + 2 padding - reach) / stride) + 1 outputs in a direction, reach = dilation (window - 1) +
// 1. Both throw for another rank or dtype, images without pixels, a window, stride or dilation below 1, a padding below
// 0 or above half the reach, and a window larger than the padded image. The mean over whole images is mean(x, {1, 2}).
#pragma once

#include <optional>

#include "autograd/ops/window.h"

namespace isonorm {

struct Pool2dOptions {
  std::optional<Size2> stride = {};  // default: the window, so that windows do not overlap
  Size2 padding = 0;                 // on each side
  Size2 dilation = 1;                // pixels from one position of the window to the next
  // Rounds the quotient up: the last window may end after the padding, but does not begin after the image.
  bool ceil = false;
  bool count_padding = true;  // avg_pool2d: zeros of the padding count
};

// The largest element of each window's part inside the image; -inf if there is none. NaN counts as largest. The
// gradient goes to the first of equal elements. Throws also for windows of more than 256 positions.
Tensor max_pool2d(const Tensor& x, Size2 window, Pool2dOptions options = {});

// The mean of each window; positions beyond the padding never count. NaN if nothing counts.
Tensor avg_pool2d(const Tensor& x, Size2 window, Pool2dOptions options = {});

// Means over windows chosen for an output size, like PyTorch's adaptive_avg_pool2d: in a direction with s pixels,
// output i of o is the mean of pixels floor(i s / o), ..., ceil((i + 1) s / o) - 1. Windows may overlap, and the output
// may be larger than the image. x [images, height, width, channels] of a floating dtype -> [images, size.height,
// size.width, channels]. Throws for another rank or dtype, images without pixels, and a size below 1.
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size);

}  // namespace isonorm
