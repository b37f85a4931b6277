// im2col: windows of images [images, height, width, channels] as rows [groups, rows, kernel_h, kernel_w, channels /
// groups]. col2im: its transpose.
//
// A thread has N neighbouring channels: 16 bytes if the channels and the addresses allow it, else one channel.
// Neighbouring threads have neighbouring channels. im2col writes every element once and reads a pixel as often as
// windows see it, mostly from cache. col2im adds to every pixel the elements of the windows that see it, in the order
// of the places; no two threads write to one pixel.
#include "core/kernels/images.h"

#include "gpu/block.cuh"
#include "gpu/kernels/window.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

using kernels::WindowShape;

// Thread e has pack e of the `count` packs of `columns`.
template <class T, int N, class I>
__global__ void __launch_bounds__(256)
    im2col_packs(T* columns, const T* x, WindowShape s, int64_t first, int64_t rows, int64_t count) {
  const I e = static_cast<I>(element());
  if (element() >= count) return;
  const I own = I(s.channels / s.groups), packs = own / N, places = I(s.places());
  const I at = e / packs, c = (e - at * packs) * N, row = at / places, place = at - row * places;
  const I group = row / I(rows), i = place / I(s.kernel_w), j = place - i * I(s.kernel_w);
  const Window<I> w(s, I(first) + row - group * I(rows));
  const int64_t pixel = w.pixel(s, i, j);
  Pack<T, N> v;
  if (pixel >= 0)
    v = load<N>(x + pixel * s.channels + int64_t(group) * own + c);
  else
    for (int k = 0; k < N; ++k) v.v[k] = T(0);
  store<N>(columns + element() * N, v);
}

// Thread e has pack e of the `count` packs of pixels from number `begin` on.
template <class T, int N, class I>
__global__ void __launch_bounds__(256) col2im_packs(acc_t<T>* dx, const T* columns, WindowShape s, int64_t first,
                                                    int64_t rows, int64_t begin, int64_t count) {
  using A = acc_t<T>;
  if (element() >= count) return;
  const I e = static_cast<I>(element()), packs = I(s.channels) / N, at = e / packs, c = (e - at * packs) * N;
  const I p = I(begin) + at, own = I(s.channels / s.groups), group = c / own;
  const int64_t depth = s.depth();
  A sum[N] = {};
  for_windows_of(s, p, [&](int64_t row, int64_t place) {
    if (row < first || row >= first + rows) return;
    const Pack<T, N> v =
        load<N>(columns + (int64_t(group) * rows + row - first) * depth + place * own + (c - group * own));
    for (int k = 0; k < N; ++k) sum[k] += A(v.v[k]);
  });
  A* to = dx + int64_t(p) * s.channels + c;
  for (int k = 0; k < N; ++k) to[k] += sum[k];
}

// Calls f.operator()<N>() with N, the number of neighbouring channels of a thread.
template <class T, class F> void visit_packs(const WindowShape& s, const auto* p, const auto* q, const F& f) {
  const bool packs = s.channels / s.groups % kPack<T> == 0 && aligned(p, q);
  packs ? f.template operator()<kPack<T>>() : f.template operator()<1>();
}

}  // namespace

void im2col(const WindowShape& s, int64_t first, const Tensor& columns, const Tensor& x) {
  if (columns.numel() == 0) return;
  visit_floating(x.dtype(), "im2col", [&]<class T>() {
    T* to = write<T>(columns);
    const T* from = x.data<T>();
    visit_packs<T>(s, to, from, [&]<int N>() {
      visit_index(std::max(columns.numel(), s.rows()), [&]<class I>() {
        const int64_t count = columns.numel() / N;
        launch("im2col", &im2col_packs<T, N, I>, one_each(count), stream_of(x), to, from, s, first, columns.size(1),
               count);
      });
    });
  });
}

void col2im(const WindowShape& s, int64_t first, const Tensor& dx, const Tensor& columns) {
  if (columns.numel() == 0) return;
  const int64_t rows = columns.size(1), pixels = s.height * s.width, image = s.out_h * s.out_w;
  // The pixels of the images that these windows see.
  const int64_t begin = first / image * pixels, end = ceil_div(first + rows, image) * pixels;
  visit_floating(columns.dtype(), "col2im", [&]<class T>() {
    acc_t<T>* to = write<acc_t<T>>(dx);
    const T* from = columns.data<T>();
    visit_packs<T>(s, to, from, [&]<int N>() {
      visit_index(std::max(s.rows(), dx.numel()), [&]<class I>() {
        const int64_t count = (end - begin) * s.channels / N;
        launch("col2im", &col2im_packs<T, N, I>, one_each(count), stream_of(dx), to, from, s, first, rows, begin,
               count);
      });
    });
  });
}

}  // namespace isonorm::gpu
