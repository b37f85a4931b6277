// Softmax by rows, and its gradient.
#include "core/kernels/loss.h"

#include <cmath>

#include "core/cpu/nontemporal.h"
#include "core/cpu/softmax_row.h"
#include "core/cpu/target.h"
#include "core/cpu/workspace.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// e: room for a row. top: the row's largest element. Returns the largest element of the next row, if `next`. The sum of
// a row has a latency: meanwhile the next row's largest element is computed, and while this is not ready, results are
// computed.
template <class A, class T>
A softmax_row(T* __restrict y, const T* __restrict x, T* e, int64_t n, bool log, bool nontemporal, A top, bool next) {
  // If the row is stored in the compute type, it keeps its exponentials. A narrower type would round them, so they are
  // computed again.
  constexpr bool kStore = std::is_same_v<A, T>;
  const A sum = sum_row<A, 1>(n, [&](int64_t i, auto lanes, Vec<A>* acc) {
    const Vec<A> v = exp_lanes<A>(lanes.load(x + i) - top);
    bring(x + n + i);  // the next row
    if constexpr (kStore)
      if (!log) lanes.store(e + i, v);
    acc[0] += lanes.keep(v);
  })[0];
  const A next_top = next ? row_max<A>(x + n, n) : A(0);
  if (log) {
    const A log_sum = std::log(sum);
    for_results<A>(nontemporal, y, n,
                   [&](int64_t i, auto lanes) { lanes.store(y + i, (lanes.load(x + i) - top) - log_sum); });
    return next_top;
  }
  const A inverse = 1 / sum;
  for_results<A>(nontemporal, y, n, [&](int64_t i, auto lanes) {
    if constexpr (kStore)
      lanes.store(y + i, lanes.load(e + i) * inverse);
    else
      lanes.store(y + i, exp_lanes<A>(lanes.load(x + i) - top) * inverse);
  });
  return next_top;
}

template <class A, class T>
void softmax_gradient_row(T* __restrict dx, const T* __restrict g, const T* __restrict y, int64_t n, bool log,
                          bool nontemporal) {
  const A sum = sum_row<A, 1>(n, [&](int64_t i, auto lanes, Vec<A>* acc) {
    const Vec<A> dy = lanes.keep(lanes.load(g + i));
    bring(g + n + i);
    bring(y + n + i);
    acc[0] += log ? dy : dy * lanes.load(y + i);
  })[0];
  for_results<A>(nontemporal, dx, n, [&](int64_t i, auto lanes) {
    const Vec<A> dy = lanes.load(g + i), p = lanes.load(y + i);
    lanes.store(dx + i, log ? dy - exp_lanes<A>(p) * sum : p * (dy - sum));
  });
}

// f(begin, end, n) for blocks of rows of out. Rows have n elements; the block has the elements [begin, end).
template <class F> void for_rows(const Tensor& out, const F& f) {
  if (out.numel() == 0) return;
  const int64_t n = out.size(-1), rows = out.numel() / n;
  parallel_for(rows, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) { f(begin * n, end * n, n); });
}

void run(const Tensor& out, const Tensor& x, bool log) {
  visit_floating(x.dtype(), "softmax", [&]<class T>() {
    const T* px = x.data<T>();
    T* py = out.mutable_data<T>();
    const bool nontemporal = passes_caches<T>(out, x.size(-1));
    for_rows(out, [=](int64_t begin, int64_t end, int64_t n) {
      const Workspace<T> row(n);
      using A = acc_t<T>;
      A top = row_max<A>(px + begin, n);
      for (int64_t at = begin; at < end; at += n)
        top = softmax_row<A>(py + at, px + at, row.data(), n, log, nontemporal, top, at + n < end);
      fence_nontemporal(nontemporal);
    });
  });
}

void run_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log) {
  visit_floating(y.dtype(), "softmax", [&]<class T>() {
    const T *pg = g.data<T>(), *py = y.data<T>();
    T* pd = dx.mutable_data<T>();
    const bool nontemporal = passes_caches<T>(dx, y.size(-1));
    for_rows(dx, [=](int64_t begin, int64_t end, int64_t n) {
      for (int64_t at = begin; at < end; at += n)
        softmax_gradient_row<acc_t<T>>(pd + at, pg + at, py + at, n, log, nontemporal);
      fence_nontemporal(nontemporal);
    });
  });
}

}  // namespace

template <Isa I> void softmax(const Tensor& out, const Tensor& x, bool log) { run(out, x, log); }
template <Isa I> void softmax_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log) {
  run_backward(dx, g, y, log);
}

template void softmax<kTarget>(const Tensor&, const Tensor&, bool);
template void softmax_backward<kTarget>(const Tensor&, const Tensor&, const Tensor&, bool);

}  // namespace isonorm::kernels::cpu
