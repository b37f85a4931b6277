// Resizes images. Each row of the result is computed from rows of x first, in the cache, and then from columns.
#include "core/kernels/images.h"

#include <algorithm>

#include "core/cpu/target.h"
#include "core/cpu/window.h"
#include "core/cpu/workspace.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// The pointers of Taps.
struct Map {
  explicit Map(const Taps& t)
      : starts(t.starts.data<int64_t>()), ids(t.ids.data<int64_t>()), weights(t.weights.data<double>()) {}

  // Computes result i from runs of n elements that begin at x.
  template <class T> void result(int64_t i, const T* x, int64_t n, T* __restrict to) const {
    int64_t t = starts[i];
    const int64_t end = starts[i + 1];
    const auto run = [&](int64_t tap) { return x + ids[tap] * n; };
    if (t == end) return void(std::fill_n(to, n, T(0)));
    if (end - t == 1) {
      const T a = T(weights[t]), *p = run(t);
      for (int64_t k = 0; k < n; ++k) to[k] = a * p[k];
      return;
    }
    const T a = T(weights[t]), b = T(weights[t + 1]), *p = run(t), *q = run(t + 1);
    for (int64_t k = 0; k < n; ++k) to[k] = a * p[k] + b * q[k];
    for (t += 2; t < end; ++t) {
      const T c = T(weights[t]), *r = run(t);
      for (int64_t k = 0; k < n; ++k) to[k] += c * r[k];
    }
  }

  const int64_t *starts, *ids;
  const double* weights;
};

template <class T> void run(const Tensor& y, const Tensor& x, const Taps& rows, const Taps& columns) {
  const int64_t height = x.size(1), row_size = x.size(2) * x.size(3), channels = x.size(3);
  const int64_t out_height = y.size(1), out_width = y.size(2);
  const T* in = x.data<T>();
  T* out = y.mutable_data<T>();
  const Map along_height(rows), along_width(columns);
  parallel_for(y.size(0) * out_height, rows_of_work(row_size + out_width * channels), [=](int64_t begin, int64_t end) {
    const Workspace<T> row(row_size);
    for (int64_t r = begin; r < end; ++r) {
      along_height.result(r % out_height, in + r / out_height * height * row_size, row_size, row.data());
      T* to = out + r * out_width * channels;
      for (int64_t j = 0; j < out_width; ++j) along_width.result(j, row.data(), channels, to + j * channels);
    }
  });
}

}  // namespace

template <Isa I> void resample(const Tensor& y, const Tensor& x, const Taps& rows, const Taps& columns) {
  x.dtype() == DType::f64 ? run<double>(y, x, rows, columns) : run<float>(y, x, rows, columns);
}

template void resample<kTarget>(const Tensor&, const Tensor&, const Taps&, const Taps&);

}  // namespace isonorm::kernels::cpu
