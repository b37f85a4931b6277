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

// y[n, h, w, o] = bias[o] + sum over i, j, c of x[n, h stride + i dilation - padding, w stride + j dilation - padding, c]
// weight[o, i, j, c], 0 outside of the image: cross-correlation, as PyTorch's conv2d, with channels last. x [images, height,
// width, in], weight [out, kernel height, kernel width, in / groups], bias [out] or undefined, of x's floating dtype or
// f32 for x of bf16 -> [images, out height, out width, out] with floor((size + 2 padding - reach) / stride) + 1 outputs in
// a direction, reach = dilation (kernel - 1) + 1. Memory beside the result does not grow with the images.
//
// On the CPU padding is not multiplied, in the output and in all gradients: an infinite weight over padding changes nothing.
// A GPU multiplies its zeros, so the output there and the weight's gradient are NaN.
//
// Throws on other ranks and dtypes, images without pixels, a window larger than the padded image, stride, dilation or groups
// below 1, a padding below 0, groups that do not divide `in` and `out`, a weight or bias that does not fit.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Conv2dOptions options = {});

}  // namespace isonorm
