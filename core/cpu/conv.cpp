// im2col and col2im. The channels of a pixel are adjacent in images, so that a line of a window is one copy.
#include "core/kernels/images.h"

#include "core/cpu/target.h"
#include "core/cpu/window.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {

template <Isa I> void im2col(const WindowShape& s, int64_t first, const Tensor& columns, const Tensor& x) {
  visit_floating(x.dtype(), "im2col", [&]<class T>() {
    const int64_t rows = columns.size(1), depth = s.depth(), own = s.channels / s.groups, line = s.kernel_w * own;
    const T* in = x.data<T>();
    T* out = columns.mutable_data<T>();
    const auto window = [=](int64_t row, int64_t group) {
      const Window w(s, first + row);
      T* to = out + (group * rows + row) * depth;
      for (int64_t i = 0; i < s.kernel_h; ++i, to += line) {
        if (i < w.h0 || i >= w.h1 || w.w0 == w.w1) {
          std::fill_n(to, line, T(0));
          continue;
        }
        std::fill(to, to + w.w0 * own, T(0));
        std::fill(to + w.w1 * own, to + line, T(0));
        const T* from = in + w.pixel(s, i, w.w0) * s.channels + group * own;
        if (s.groups == 1 && s.dilation_w == 1)
          std::copy_n(from, (w.w1 - w.w0) * own, to + w.w0 * own);
        else
          for (int64_t j = w.w0; j < w.w1; ++j, from += s.dilation_w * s.channels) std::copy_n(from, own, to + j * own);
      }
    };
    parallel_for(rows, rows_of_work(depth * s.groups), [&](int64_t begin, int64_t end) {
      for (int64_t group = 0; group < s.groups; ++group)
        for (int64_t row = begin; row < end; ++row) window(row, group);
    });
  });
}

template <Isa I> void col2im(const WindowShape& s, int64_t first, const Tensor& dx, const Tensor& columns) {
  visit_floating(columns.dtype(), "col2im", [&]<class T>() {
    using A = acc_t<T>;
    const int64_t rows = columns.size(1), depth = s.depth(), own = s.channels / s.groups;
    const T* in = columns.data<T>();
    A* out = dx.mutable_data<A>();
    // The lines of pixels that these windows cover.
    const auto line_of = [&](int64_t row, int64_t below) {
      const Window w(s, row);
      return w.image * s.height + std::clamp<int64_t>(w.y + below, 0, s.height);
    };
    const int64_t begin = line_of(first, 0) * s.width, end = line_of(first + rows - 1, s.reach_h()) * s.width;
    parallel_for(end - begin, rows_of_work(depth * s.groups), [=](int64_t from, int64_t to) {
      for (int64_t p = begin + from; p < begin + to; ++p)
        for_windows_of(s, p, [&](int64_t row, int64_t place) {
          if (row < first || row >= first + rows) return;
          for (int64_t group = 0; group < s.groups; ++group) {
            const T* c = in + (group * rows + row - first) * depth + place * own;
            A* d = out + p * s.channels + group * own;
#pragma omp simd
            for (int64_t k = 0; k < own; ++k) d[k] += A(c[k]);
          }
        });
    });
  });
}

template void im2col<kTarget>(const WindowShape&, int64_t, const Tensor&, const Tensor&);
template void col2im<kTarget>(const WindowShape&, int64_t, const Tensor&, const Tensor&);

}  // namespace isonorm::kernels::cpu
