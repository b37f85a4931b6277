// Loops over windows of images, for the CPU's kernels.
#pragma once

#include <algorithm>

#include "core/formulas/round_up.h"
#include "core/kernels/images.h"

namespace isonorm {
namespace {

// Window number `row`: its image and the pixel (y, x) of its first place, which may be padding. The places [h0, h1) x
// [w0, w1) are inside the image.
struct Window {
  int64_t image, y, x, h0, h1, w0, w1;

  Window(const kernels::WindowShape& s, int64_t row) {
    image = row / (s.out_h * s.out_w);
    y = row / s.out_w % s.out_h * s.stride_h - s.pad_h;
    x = row % s.out_w * s.stride_w - s.pad_w;
    const kernels::Places h = kernels::places_between(y, s.kernel_h, s.dilation_h, 0, s.height),
                          w = kernels::places_between(x, s.kernel_w, s.dilation_w, 0, s.width);
    h0 = h.begin, h1 = h.end, w0 = w.begin, w1 = w.end;
  }
  // Number of the pixel at place (i, j), which is inside the image.
  int64_t pixel(const kernels::WindowShape& s, int64_t i, int64_t j) const {
    return (image * s.height + y + i * s.dilation_h) * s.width + x + j * s.dilation_w;
  }
};

// The number of places of window `row` that a mean divides by.
inline int64_t counted_places(const kernels::WindowShape& s, int64_t row) {
  const Window w(s, row);
  return s.counted(w.y, w.x);
}

// f(row, place) for all windows that contain pixel number p of the images, in the order of p's place in them.
template <class F> void for_windows_of(const kernels::WindowShape& s, int64_t p, const F& f) {
  const int64_t image = p / (s.height * s.width), y = p / s.width % s.height + s.pad_h, x = p % s.width + s.pad_w;
  // The first window whose extent reaches the pixel. A dilated window may have no place at the pixel all the same.
  const auto first = [](int64_t at, int64_t reach, int64_t stride) {
    return at < reach ? 0 : (at - reach) / stride + 1;
  };
  const int64_t y1 = std::min(s.out_h - 1, y / s.stride_h), x1 = std::min(s.out_w - 1, x / s.stride_w);
  for (int64_t oy = y1; oy >= first(y, s.reach_h(), s.stride_h); --oy) {
    const int64_t i = kernels::place_at(y - oy * s.stride_h, s.dilation_h);
    if (i < 0) continue;
    for (int64_t ox = x1; ox >= first(x, s.reach_w(), s.stride_w); --ox)
      if (const int64_t j = kernels::place_at(x - ox * s.stride_w, s.dilation_w); j >= 0)
        f((image * s.out_h + oy) * s.out_w + ox, i * s.kernel_w + j);
  }
}

// Number of rows of `length` elements that make some 10 us of work.
inline int64_t rows_of_work(int64_t length) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length)); }

}  // namespace
}  // namespace isonorm
