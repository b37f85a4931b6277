// Convolution, pooling and resizing of images [images, height, width, channels].
#pragma once

#include <optional>

#include "core/kernels/images.h"
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

// Convolution of images and sequences, and transposed convolution. Channels are last.

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

// Pooling of images. x [images, height, width, channels] of a floating dtype -> [images, out height, out width,
// channels] with floor((size + 2 padding - reach) / stride) + 1 outputs in a direction, reach = dilation (window - 1) +
// 1. Both throw for another rank or dtype, images without pixels, a window, stride or dilation below 1, a padding below
// 0 or above half the reach, and a window larger than the padded image. The mean over whole images is mean(x, {1, 2}).

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

// nearest: every pixel of the output is a copy of a pixel of the input. bilinear: linear interpolation along the height
// and along the width.
enum class Interpolation { nearest, bilinear };

// A factor for the height and one for the width; one number is used for both.
struct Scale2 {
  double height, width;
  constexpr Scale2(double both) : height(both), width(both) {}
  constexpr Scale2(double height, double width) : height(height), width(width) {}
  friend void append_text(std::string& s, const Scale2& z) { s += text(z.height, " x ", z.width); }
};

// Either `size` or `scale_factor` is given.
struct InterpolateOptions {
  Size2 size = 0;           // pixels of the output; 0: floor(scale_factor x pixels)
  Scale2 scale_factor = 0;  // 0: size / pixels
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  // bilinear: the centres of the first and the last pixels keep their positions
};

// Resizes images, like PyTorch's interpolate. x [images, height, width, channels] of a floating dtype -> [images, out
// height, out width, channels]. In a direction with s pixels, output i of o is read at
//   nearest:                  floor(i / f)
//   bilinear:                 (i + 1/2) / f - 1/2, moved to 0 or s - 1 if it lies outside
//   bilinear, align_corners:  i (s - 1) / (o - 1), 0 if o is 1
// with f = scale_factor, or o / s if the size is given. f is also o / s if o is s (the pixels stay as they are) and,
// for nearest, if o is 2 s: scale_factor 1.1 does not move the pixels of an image of 4, although 4.4 is cut to 4. This
// is PyTorch's rule without recompute_scale_factor (pytorch/pytorch#70559). bf16 is computed in f32.
//
// Throws on another rank or dtype, on images without pixels and on align_corners of nearest. Also throws if both size
// and scale_factor are given, or neither, and if a size is below 1.
Tensor interpolate(const Tensor& x, InterpolateOptions options);

}  // namespace isonorm
