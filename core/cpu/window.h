// Walks over windows of images, for the CPU's kernels.
#pragma once

#include <algorithm>

#include "core/formulas/round_up.h"
#include "core/kernels/window.h"

namespace isonorm {
namespace {

// Where window `row` lies: its image and the pixel of its first place, which may be padding; the places [h0, h1) x
// [w0, w1) are inside the image.
struct Window {
  int64_t image, y, x, h0, h1, w0, w1;

  Window(const kernels::WindowShape& s, int64_t row) {
    image = row / (s.out_h * s.out_w);
    y = row / s.out_w % s.out_h * s.stride_h - s.pad_h;
    x = row % s.out_w * s.stride_w - s.pad_w;
    h0 = std::clamp<int64_t>(-y, 0, s.kernel_h);
    h1 = std::clamp<int64_t>(s.height - y, h0, s.kernel_h);
    w0 = std::clamp<int64_t>(-x, 0, s.kernel_w);
    w1 = std::clamp<int64_t>(s.width - x, w0, s.kernel_w);
  }
  // Of its place (i, j), inside the image.
  int64_t pixel(const kernels::WindowShape& s, int64_t i, int64_t j) const {
    return (image * s.height + y + i) * s.width + x + j;
  }
};

// f(row, place) for the windows that pixel number p of the images is in, in the order of its places in them.
template <class F> void for_windows_of(const kernels::WindowShape& s, int64_t p, const F& f) {
  const int64_t image = p / (s.height * s.width), y = p / s.width % s.height + s.pad_h, x = p % s.width + s.pad_w;
  // The windows whose place i = y - stride out is in [0, kernel).
  const auto first = [](int64_t at, int64_t kernel, int64_t stride) {
    return at < kernel ? 0 : (at - kernel) / stride + 1;
  };
  const int64_t y1 = std::min(s.out_h - 1, y / s.stride_h), x1 = std::min(s.out_w - 1, x / s.stride_w);
  for (int64_t oy = y1; oy >= first(y, s.kernel_h, s.stride_h); --oy)
    for (int64_t ox = x1; ox >= first(x, s.kernel_w, s.stride_w); --ox)
      f((image * s.out_h + oy) * s.out_w + ox, (y - oy * s.stride_h) * s.kernel_w + x - ox * s.stride_w);
}

// Rows of `length` elements that make some 10 us of work.
inline int64_t rows_of_work(int64_t length) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length)); }

}  // namespace
}  // namespace isonorm
