// Images in another size.
#pragma once

#include "autograd/ops/window.h"

namespace isonorm {

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
