// Windows over images, for convolution and pooling.
#pragma once

#include <cstdint>

#include "core/formulas/hd.h"
#include "core/formulas/round_up.h"

namespace isonorm::kernels {

// The places [begin, end) of a window.
struct Places {
  int64_t begin, end;
};
// `count` places start at pixel `at` with a distance of `apart`: the places whose pixels are in [low, high).
ISO_HD constexpr Places places_between(int64_t at, int64_t count, int64_t apart, int64_t low, int64_t high) {
  const auto before = [&](int64_t pixel) {
    const int64_t n = pixel <= at ? 0 : apart == 1 ? pixel - at : ceil_div(pixel - at, apart);
    return n < count ? n : count;
  };
  return {before(low), before(high)};
}
// The number of the place that is `distance` pixels after the first one; -1 if there is none.
ISO_HD constexpr int64_t place_at(int64_t distance, int64_t apart) {
  return apart == 1 ? distance : distance % apart == 0 ? distance / apart : -1;
}

// Images [images, height, width, channels], contiguous. The window of output (image, y, x) has the pixels (y stride_h -
// pad_h + i dilation_h, x stride_w - pad_w + j dilation_w), 0 <= i < kernel_h, 0 <= j < kernel_w; pixels outside of the
// image are padding. Outputs are numbered as rows of [images, out_h, out_w].
struct WindowShape {
  int64_t images, height, width, channels;
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  int64_t out_h, out_w;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;          // channel groups of a grouped convolution
  bool padding_counts = true;  // in a mean, padding counts as zeros

  ISO_HD int64_t rows() const { return images * out_h * out_w; }
  ISO_HD int64_t places() const { return kernel_h * kernel_w; }
  ISO_HD int64_t reach_h() const { return (kernel_h - 1) * dilation_h + 1; }  // pixels from the first place to the last
  ISO_HD int64_t reach_w() const { return (kernel_w - 1) * dilation_w + 1; }
  // The number of places that a mean divides by, for the window whose first place is (y, x). Places beyond the padding
  // never count.
  ISO_HD int64_t counted(int64_t y, int64_t x) const {
    const int64_t h = padding_counts ? pad_h : 0, w = padding_counts ? pad_w : 0;
    const Places i = places_between(y, kernel_h, dilation_h, -h, height + h),
                 j = places_between(x, kernel_w, dilation_w, -w, width + w);
    return (i.end - i.begin) * (j.end - j.begin);
  }
  ISO_HD int64_t depth() const { return places() * (channels / groups); }  // elements in a sum of one group
};

}  // namespace isonorm::kernels
