// Softmax of rows and its gradient.
#include "core/kernels/softmax.h"

#include <cmath>

#include "core/cpu/softmax_row.h"
#include "core/cpu/target.h"
#include "core/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

template <class A, class T> void softmax_row(T* __restrict y, const T* __restrict x, int64_t n, bool log) {
  const A top = row_max<A>(x, n);
  // A row that is stored as it is computed keeps its exponentials; a narrower one would round them, and computes them
  // again.
  constexpr bool kStore = std::is_same_v<A, T>;
  const A sum = sum_row<A, 1>(n, [&](int64_t i, auto lanes, Vec<A>* acc) {
    const Vec<A> e = exp_lanes<A>(lanes.load(x + i) - top);
    if constexpr (kStore)
      if (!log) lanes.store(y + i, e);
    acc[0] += lanes.keep(e);
  })[0];
  if (log) {
    const A log_sum = std::log(sum);
    for_lanes<A>(n, [&](int64_t i, auto lanes) { lanes.store(y + i, (lanes.load(x + i) - top) - log_sum); });
    return;
  }
  const A inverse = 1 / sum;
  for_lanes<A>(n, [&](int64_t i, auto lanes) {
    if constexpr (kStore) {
      const Vec<A> e = lanes.load(y + i);
      lanes.store(y + i, lanes.choose(e * inverse, e));
    } else {
      lanes.store(y + i, exp_lanes<A>(lanes.load(x + i) - top) * inverse);
    }
  });
}

template <class A, class T>
void softmax_gradient_row(T* __restrict dx, const T* __restrict g, const T* __restrict y, int64_t n, bool log) {
  const A sum = sum_row<A, 1>(n, [&](int64_t i, auto lanes, Vec<A>* acc) {
    const Vec<A> dy = lanes.keep(lanes.load(g + i));
    acc[0] += log ? dy : dy * lanes.load(y + i);
  })[0];
  for_lanes<A>(n, [&](int64_t i, auto lanes) {
    const Vec<A> dy = lanes.load(g + i), p = lanes.load(y + i);
    lanes.store(dx + i, log ? dy - exp_lanes<A>(p) * sum : p * (dy - sum));
  });
}

template <class F> void for_rows(const Tensor& x, const F& f) {
  if (x.numel() == 0) return;
  const int64_t n = x.size(-1);
  parallel_for(x.numel() / n, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r * n, n);
  });
}

}  // namespace

template <Isa I> void softmax(const Tensor& out, const Tensor& x, bool log) {
  visit_floating(x.dtype(), "softmax", [&]<class T>() {
    const T* px = x.data<T>();
    T* py = out.mutable_data<T>();
    for_rows(x, [=](int64_t at, int64_t n) { softmax_row<acc_t<T>>(py + at, px + at, n, log); });
  });
}

template <Isa I> void softmax_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log) {
  visit_floating(y.dtype(), "softmax", [&]<class T>() {
    const T *pg = g.data<T>(), *py = y.data<T>();
    T* pd = dx.mutable_data<T>();
    for_rows(y, [=](int64_t at, int64_t n) { softmax_gradient_row<acc_t<T>>(pd + at, pg + at, py + at, n, log); });
  });
}

template void softmax<kTarget>(const Tensor&, const Tensor&, bool);
template void softmax_backward<kTarget>(const Tensor&, const Tensor&, const Tensor&, bool);

}  // namespace isonorm::kernels::cpu
