// The windows that see a pixel, for the kernels of convolution and pooling. I: a 32-bit type if all indices fit, whose
// divisions take a fifth of the time.
#pragma once

#include "core/kernels/images.h"
#include "gpu/block.cuh"
#include "gpu/walk.cuh"

namespace isonorm::gpu {

template <class I> struct Window {
  I image;
  int64_t y, x;  // its first place, which may be padding

  __device__ __forceinline__ Window(const kernels::WindowShape& s, I row) {
    const I line = row / I(s.out_w);
    image = line / I(s.out_h);
    x = int64_t(row - line * I(s.out_w)) * s.stride_w - s.pad_w;
    y = int64_t(line - image * I(s.out_h)) * s.stride_h - s.pad_h;
  }
  // The pixel at place (i, j); -1 in the padding.
  __device__ __forceinline__ int64_t pixel(const kernels::WindowShape& s, int64_t i, int64_t j) const {
    const int64_t h = y + i * s.dilation_h, w = x + j * s.dilation_w;
    return h < 0 || h >= s.height || w < 0 || w >= s.width ? -1 : (int64_t(image) * s.height + h) * s.width + w;
  }
};

// Calls f(row, place) for the windows that contain pixel number p of the images, in the order of its places in them.
template <class I, class F>
__device__ __forceinline__ void for_windows_of(const kernels::WindowShape& s, I p, const F& f) {
  const I line = p / I(s.width), image = line / I(s.height);
  const int64_t y = int64_t(line - image * I(s.height)) + s.pad_h, x = int64_t(p - line * I(s.width)) + s.pad_w;
  // Without dilation only every stride-th place is possible; with dilation all places are tried.
  const int64_t step_h = s.dilation_h == 1 ? s.stride_h : 1, step_w = s.dilation_w == 1 ? s.stride_w : 1;
  for (int64_t i = y % step_h; i < s.kernel_h && i * s.dilation_h <= y; i += step_h) {
    const int64_t above = y - i * s.dilation_h, oy = above / s.stride_h;
    if (oy >= s.out_h || oy * s.stride_h != above) continue;
    for (int64_t j = x % step_w; j < s.kernel_w && j * s.dilation_w <= x; j += step_w) {
      const int64_t left = x - j * s.dilation_w, ox = left / s.stride_w;
      if (ox < s.out_w && ox * s.stride_w == left)
        f((int64_t(image) * s.out_h + oy) * s.out_w + ox, i * s.kernel_w + j);
    }
  }
}

// Calls f.operator()<I>() with an index type for `count` elements.
template <class F> void visit_index(int64_t count, const F& f) {
  count <= int64_t{0xffffffff} ? f.template operator()<uint32_t>() : f.template operator()<int64_t>();
}

}  // namespace isonorm::gpu
