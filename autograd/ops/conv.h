// Convolution of images and sequences, and transposed convolution. Channels are last.
#pragma once

#include "autograd/ops/window.h"

namespace isonorm {

struct Conv2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;   // zeros on each side
  Size2 dilation = 1;  // pixels from one position of the window to the next
  int64_t groups = 1;  // output channels of group g read only the input channels of group g
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
// Throws for other ranks and dtypes, images without pixels, a window larger than the padded image, stride, dilation or
// groups below 1, a padding below 0, groups that do not divide `in` and `out`, and a weight or bias that does not fit.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Conv2dOptions options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;   // zeros on each side
  int64_t dilation = 1;  // steps from one position of the window to the next
  int64_t groups = 1;    // as in Conv2dOptions
};

// conv2d() of sequences, as images of height 1: x [sequences, length, in], weight [out, kernel, in / groups], bias
// [out] or undefined -> [sequences, out length, out], with the dtypes, lengths and errors of conv2d().
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Conv1dOptions options = {});

struct ConvTranspose2dOptions {
  Size2 stride = 1;          // pixels of the output from one pixel of the input to the next
  Size2 padding = 0;         // pixels of the output that are left out on each side
  Size2 output_padding = 0;  // further pixels at the bottom and at the right; less than stride or dilation
  Size2 dilation = 1;
  int64_t groups = 1;
};

// Transposed convolution, like PyTorch's conv_transpose2d: the gradient of conv2d() by its images. Every pixel of the
// input adds its window to the output, which begins with the bias:
//   y[n, h stride + i dilation - padding, w stride + j dilation - padding, o] +=
//       sum over c of x[n, h, w, c] weight[c, i, j, o]
//
// Shapes: x [images, height, width, in], weight [in, kernel height, kernel width, out / groups], bias [out] or
// undefined -> [images, out height, out width, out]; dtypes as in conv2d(). A direction has (size - 1) stride +
// dilation (kernel - 1) + 1 + output_padding - 2 padding outputs. A convolution with stride > 1 gives several sizes of
// images the same number of outputs; output_padding chooses among these sizes.
//
// Throws like conv2d(), if output_padding is below 0 or not below the larger of stride and dilation, and if the padding
// leaves nothing of the output.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        ConvTranspose2dOptions options = {});

}  // namespace isonorm
