// Convolution of images.
#pragma once

#include "autograd/ops/window.h"

namespace isonorm {

struct Conv2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;   // zeros on each side
  Size2 dilation = 1;  // pixels from one place of the window to the next
  int64_t groups = 1;  // output channels of the g-th part read the g-th part of the input channels alone
};

// Cross-correlation with channels last, like PyTorch's conv2d. Pixels outside of the image are 0:
//   y[n, h, w, o] = bias[o] + sum over i, j, c of
//       x[n, h stride + i dilation - padding, w stride + j dilation - padding, c] weight[o, i, j, c]
//
// x [images, height, width, in], weight [out, kernel height, kernel width, in / groups], bias [out] or undefined ->
// [images, out height, out width, out]. Weight and bias have x's floating dtype; they may be f32 if x is bf16. Each
// direction has floor((size + 2 padding - reach) / stride) + 1 outputs with reach = dilation (kernel - 1) + 1. The
// memory that the operation needs in addition to its result does not grow with the number of images.
//
// On the CPU padding is not multiplied, in the output and in all gradients: an infinite weight over padding changes
// nothing. A GPU multiplies the zeros of the padding, so the output there and the weight's gradient are NaN.
//
// Throws on other ranks and dtypes, images without pixels, a window larger than the padded image, stride, dilation or groups
// below 1, a padding below 0, groups that do not divide `in` and `out`, a weight or bias that does not fit.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Conv2dOptions options = {});

}  // namespace isonorm
