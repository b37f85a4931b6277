#include "equivalence/convert/sum_rounding.h"

#include <algorithm>
#include <cmath>

#include "core/system/parallel.h"
#include "core/view.h"

namespace isonorm::equivalence {
namespace {

constexpr int64_t kSlices = 64;  // most slices of a block

// x: n numbers, `stride` apart; y: the same, each rounded to the nearest. Keeps the error of every sum of the first
// entries within `enough`. An entry's own rounding error is at most that, so an entry that would exceed it goes the
// other way by one step.
template <class T> void mend(const double* x, T* y, int64_t n, int64_t stride, const Steps& steps, double last) {
  double off = 0, largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i * stride]));
  const double enough = steps.at(largest) / 2;
  for (int64_t i = 0; i < n; ++i) {
    const double nearest = static_cast<double>(y[i * stride]), moved = nearest - x[i * stride];
    off += moved;
    if (std::abs(off) <= enough || off * moved <= 0) continue;
    const double step = std::copysign(steps.at(x[i * stride]), moved);
    if (std::abs(nearest - step) > last) continue;
    y[i * stride] = T(nearest - step);
    off -= step;
  }
}

}  // namespace

Tensor rounded_with_sum(const Tensor& x, int dim, NumberFormat format, const std::string& name) {
  const Tensor exact = detached::contiguous(x), nearest = rounded(exact, format, name);
  if (format == DType::f64 || x.numel() == 0) return nearest;
  const int64_t n = x.size(dim);
  int64_t stride = 1;
  for (int i = dim + 1; i < x.rank(); ++i) stride *= x.size(i);
  const double* from = exact.data<double>();
  const Steps steps(format);
  const double last = largest_number(format);
  visit_floating(format.dtype, "round", [&]<class T>() {
    T* to = nearest.mutable_data<T>();
    parallel_for(even_blocks(x.numel() / n, kSlices), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / stride * n * stride + i % stride;
        mend(from + at, to + at, n, stride, steps, last);
      }
    });
  });
  return nearest;
}

}  // namespace isonorm::equivalence
