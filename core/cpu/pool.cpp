// Pooling: loops over adjacent channels of a window, in groups of channels that stay in the first-level cache.
#include "core/kernels/images.h"

#include <limits>

#include "core/cpu/target.h"
#include "core/cpu/window.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

constexpr int64_t kChannels = 256;  // channels at a time

// f(row, c, n) for the channels [c, c + n) of each of `rows` rows. `work`: elements per channel that f reads or writes.
template <class F> void for_channels(const WindowShape& s, int64_t rows, int64_t work, const F& f) {
  parallel_for(rows, rows_of_work(work * s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t c = 0; c < s.channels; c += kChannels) f(row, c, std::min(kChannels, s.channels - c));
  });
}

template <class T>
void largest(const WindowShape& s, const T* x, int64_t row, int64_t c, int64_t n, T* y, uint8_t* place) {
  using A = acc_t<T>;
  using Place = std::conditional_t<sizeof(A) == 4, int32_t, int64_t>;  // as wide as A, for one vector loop
  const Window w(s, row);
  A top[kChannels];
  Place at[kChannels];
  bool begun = false;
  for (int64_t i = w.h0; i < w.h1; ++i)
    for (int64_t j = w.w0; j < w.w1; ++j) {
      const T* p = x + w.pixel(s, i, j) * s.channels + c;
      const Place here = static_cast<Place>(i * s.kernel_w + j);
      if (!begun) {
        for (int64_t k = 0; k < n; ++k) top[k] = A(p[k]), at[k] = here;
        begun = true;
        continue;
      }
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) {
        const A v = A(p[k]);
        const bool wins = v > top[k] || (v != v && top[k] == top[k]);
        top[k] = wins ? v : top[k];
        at[k] = wins ? here : at[k];
      }
    }
  if (!begun)
    for (int64_t k = 0; k < n; ++k) top[k] = -std::numeric_limits<A>::infinity(), at[k] = 0;
  for (int64_t k = 0; k < n; ++k) y[k] = T(top[k]);
  if (place)
    for (int64_t k = 0; k < n; ++k) place[k] = static_cast<uint8_t>(at[k]);
}

// out = sum / count for each channel; add(sum) computes the sums.
template <class T, class F> void summed(int64_t n, acc_t<T> count, T* out, const F& add) {
  using A = acc_t<T>;
  A sum[kChannels];
  std::fill_n(sum, n, A(0));
  add(sum);
  for (int64_t k = 0; k < n; ++k) out[k] = T(sum[k] / count);
}

}  // namespace

template <Isa I> void max_pool(const WindowShape& s, const Tensor& y, const Tensor& place, const Tensor& x) {
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    uint8_t* places = place.defined() ? place.mutable_data<uint8_t>() : nullptr;
    for_channels(s, s.rows(), s.places(), [=](int64_t row, int64_t c, int64_t n) {
      const int64_t at = row * s.channels + c;
      largest(s, in, row, c, n, out + at, places ? places + at : nullptr);
    });
  });
}

template <Isa I> void max_pool_backward(const WindowShape& s, const Tensor& dx, const Tensor& dy, const Tensor& place) {
  visit_floating(dy.dtype(), "max_pool2d_backward", [&]<class T>() {
    using A = acc_t<T>;
    const T* g = dy.data<T>();
    const uint8_t* places = place.data<uint8_t>();
    T* out = dx.mutable_data<T>();
    for_channels(s, s.images * s.height * s.width, 1, [=](int64_t pixel, int64_t c, int64_t n) {
      summed(n, A(1), out + pixel * s.channels + c, [&](A* sum) {
        for_windows_of(s, pixel, [&](int64_t row, int64_t here) {
          const uint8_t* p = places + row * s.channels + c;
          const T* d = g + row * s.channels + c;
          const auto mine = static_cast<uint8_t>(here);
#pragma omp simd
          for (int64_t k = 0; k < n; ++k) sum[k] += p[k] == mine ? A(d[k]) : A(0);
        });
      });
    });
  });
}

template <Isa I> void avg_pool(const WindowShape& s, const Tensor& y, const Tensor& x) {
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    using A = acc_t<T>;
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for_channels(s, s.rows(), s.places(), [=](int64_t row, int64_t c, int64_t n) {
      summed(n, static_cast<A>(counted_places(s, row)), out + row * s.channels + c, [&](A* sum) {
        const Window w(s, row);
        for (int64_t i = w.h0; i < w.h1; ++i)
          for (int64_t j = w.w0; j < w.w1; ++j) {
            const T* p = in + w.pixel(s, i, j) * s.channels + c;
#pragma omp simd
            for (int64_t k = 0; k < n; ++k) sum[k] += A(p[k]);
          }
      });
    });
  });
}

template <Isa I> void avg_pool_backward(const WindowShape& s, const Tensor& dx, const Tensor& dy) {
  visit_floating(dy.dtype(), "avg_pool2d_backward", [&]<class T>() {
    using A = acc_t<T>;
    const T* g = dy.data<T>();
    T* out = dx.mutable_data<T>();
    for_channels(s, s.images * s.height * s.width, 1, [=](int64_t pixel, int64_t c, int64_t n) {
      summed(n, A(1), out + pixel * s.channels + c, [&](A* sum) {
        for_windows_of(s, pixel, [&](int64_t row, int64_t) {
          const A share = 1 / static_cast<A>(counted_places(s, row));
          const T* p = g + row * s.channels + c;
#pragma omp simd
          for (int64_t k = 0; k < n; ++k) sum[k] += A(p[k]) * share;
        });
      });
    });
  });
}

template void max_pool<kTarget>(const WindowShape&, const Tensor&, const Tensor&, const Tensor&);
template void max_pool_backward<kTarget>(const WindowShape&, const Tensor&, const Tensor&, const Tensor&);
template void avg_pool<kTarget>(const WindowShape&, const Tensor&, const Tensor&);
template void avg_pool_backward<kTarget>(const WindowShape&, const Tensor&, const Tensor&);

}  // namespace isonorm::kernels::cpu
