// max_pool2d, avg_pool2d and their gradients. Images [images, height, width, channels].
//
// A thread has one element of a result, neighbouring threads neighbouring channels. Forward it reads the window of an
// output; backward it reads the outputs whose windows see a pixel, so no two threads write to one place and sums have a
// fixed order.
#include "core/kernels/images.h"

#include <limits>

#include "gpu/kernels/window.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

using kernels::WindowShape;

template <class T, class I>
__global__ void __launch_bounds__(256) max_of_windows(T* y, uint8_t* place, const T* x, WindowShape s, int64_t count) {
  using A = acc_t<T>;
  if (element() >= count) return;
  const I e = static_cast<I>(element()), row = e / I(s.channels), c = e - row * I(s.channels);
  const Window<I> w(s, row);
  A top = 0;
  int at = -1;
  for (int64_t i = 0; i < s.kernel_h; ++i)
    for (int64_t j = 0; j < s.kernel_w; ++j) {
      const int64_t pixel = w.pixel(s, i, j);
      if (pixel < 0) continue;
      const A v = A(x[pixel * s.channels + c]);
      if (at < 0 || v > top || (v != v && top == top)) top = v, at = static_cast<int>(i * s.kernel_w + j);
    }
  y[e] = at < 0 ? T(-std::numeric_limits<A>::infinity()) : T(top);
  if (place) place[e] = static_cast<uint8_t>(at < 0 ? 0 : at);
}

template <class T, class I>
__global__ void __launch_bounds__(256) mean_of_windows(T* y, const T* x, WindowShape s, int64_t count) {
  using A = acc_t<T>;
  if (element() >= count) return;
  const I e = static_cast<I>(element()), row = e / I(s.channels), c = e - row * I(s.channels);
  const Window<I> w(s, row);
  A sum = 0;
  for (int64_t i = 0; i < s.kernel_h; ++i)
    for (int64_t j = 0; j < s.kernel_w; ++j) {
      const int64_t pixel = w.pixel(s, i, j);
      if (pixel >= 0) sum += A(x[pixel * s.channels + c]);
    }
  y[e] = T(sum / A(s.counted(w.y, w.x)));
}

// dx = the sum of dy over the windows that see a pixel. With `place`, only windows whose largest element is this pixel
// count; without, each dy is divided by the number of places in its window that count.
template <class T, class I>
__global__ void __launch_bounds__(256)
    pool_gradient(T* dx, const T* dy, const uint8_t* place, WindowShape s, int64_t count) {
  using A = acc_t<T>;
  if (element() >= count) return;
  const I e = static_cast<I>(element()), p = e / I(s.channels), c = e - p * I(s.channels);
  A sum = 0;
  for_windows_of(s, p, [&](int64_t row, int64_t here) {
    const int64_t at = row * s.channels + c;
    if (place) {
      if (place[at] == here) sum += A(dy[at]);
      return;
    }
    const Window<I> w(s, I(row));
    sum += A(dy[at]) * (1 / A(s.counted(w.y, w.x)));
  });
  dx[e] = T(sum);
}

void run_gradient(const char* name, const WindowShape& s, const Tensor& dx, const Tensor& dy, const Tensor& place) {
  if (dx.numel() == 0) return;
  visit_floating(dx.dtype(), name, [&]<class T>() {
    visit_index(std::max(dx.numel(), s.rows()), [&]<class I>() {
      launch(name, &pool_gradient<T, I>, one_each(dx.numel()), stream_of(dx), write<T>(dx), dy.data<T>(),
             read_or_null<uint8_t>(place), s, dx.numel());
    });
  });
}

}  // namespace

void max_pool(const WindowShape& s, const Tensor& y, const Tensor& place, const Tensor& x) {
  if (y.numel() == 0) return;
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    visit_index(y.numel(), [&]<class I>() {
      launch("max_pool2d", &max_of_windows<T, I>, one_each(y.numel()), stream_of(y), write<T>(y),
             write_or_null<uint8_t>(place), x.data<T>(), s, y.numel());
    });
  });
}

void max_pool_backward(const WindowShape& s, const Tensor& dx, const Tensor& dy, const Tensor& place) {
  run_gradient("max_pool2d_backward", s, dx, dy, place);
}

void avg_pool(const WindowShape& s, const Tensor& y, const Tensor& x) {
  if (y.numel() == 0) return;
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    visit_index(y.numel(), [&]<class I>() {
      launch("avg_pool2d", &mean_of_windows<T, I>, one_each(y.numel()), stream_of(y), write<T>(y), x.data<T>(), s,
             y.numel());
    });
  });
}

void avg_pool_backward(const WindowShape& s, const Tensor& dx, const Tensor& dy) {
  run_gradient("avg_pool2d_backward", s, dx, dy, Tensor());
}

}  // namespace isonorm::gpu
