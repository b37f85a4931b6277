// Cross-entropy by rows, and its gradient.
#include "core/kernels/loss.h"

#include <algorithm>
#include <cmath>

#include "core/cpu/softmax_row.h"
#include "core/cpu/target.h"
#include "core/formulas/math.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

template <class F> void for_rows(const Tensor& logits, const F& f) {
  const int64_t classes = logits.size(-1);
  parallel_for(logits.size(0), std::max<int64_t>(1, 8192 / classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}

// Writes (m, s) to stats and returns the loss.
template <class A, class T> A loss_row(A* stats, const T* x, int64_t n, int64_t target, double smoothing) {
  const A top = row_max<A>(x, n);
  const bool spread = smoothing != 0;
  // sum exp(x - m), and sum (x - m) only if it counts: a class at -inf would make it NaN.
  const auto [exponentials, rest] = sum_row<A, 2>(n, [&](int64_t i, auto lanes, Vec<A>* acc) {
    const Vec<A> v = lanes.load(x + i) - top;
    acc[0] += lanes.keep(exp_lanes<A>(v));
    if (spread) acc[1] += lanes.keep(v);
  });
  stats[0] = top;
  stats[1] = std::log(exponentials);
  const A loss = stats[1] - static_cast<A>(1 - smoothing) * (A(x[target]) - top);
  return spread ? loss - static_cast<A>(smoothing / static_cast<double>(n)) * rest : loss;
}

template <class A, class T>
void gradient_row(T* dx, A g, const T* x, int64_t n, int64_t target, const A* stats, double smoothing) {
  const A top = stats[0], log_sum = stats[1], base = static_cast<A>(smoothing / static_cast<double>(n));
  const A at_target =
      math::expm1((A(x[target]) - top) - log_sum) + (static_cast<A>(smoothing) - base);  // p - 1 keeps its digits
  for_lanes<A>(n, [&](int64_t i, auto lanes) {
    const Vec<A> v = g * (exp_lanes<A>((lanes.load(x + i) - top) - log_sum) - base);
    lanes.store(dx + i, lanes.choose(v, lanes.load(dx + i)));  // in place: elements that are done stay
  });
  dx[target] = T(g * at_target);
}

}  // namespace

template <Isa I>
void cross_entropy(const Tensor& losses, const Tensor& stats, const Tensor& logits, const Tensor& target,
                   CrossEntropySpec spec) {
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    const int64_t n = logits.size(-1);
    const T* x = logits.data<T>();
    const int64_t* t = target.data<int64_t>();
    A *loss = losses.mutable_data<A>(), *stat = stats.mutable_data<A>();
    for_rows(logits, [=](int64_t r) {
      loss[r] = t[r] == spec.ignored ? A(0) : loss_row(stat + 2 * r, x + r * n, n, t[r], spec.smoothing);
    });
  });
}

template <Isa I>
void cross_entropy_backward(const Tensor& dlogits, const Tensor& g, const Tensor& logits, const Tensor& target,
                            const Tensor& stats, CrossEntropySpec spec) {
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    const int64_t n = logits.size(-1), step = g.strides().v[0];
    const T* x = logits.data<T>();
    const int64_t* t = target.data<int64_t>();
    const A *stat = stats.data<A>(), *pg = g.data<A>();
    T* dx = dlogits.mutable_data<T>();
    for_rows(logits, [=](int64_t r) {
      if (t[r] == spec.ignored)
        std::fill(dx + r * n, dx + (r + 1) * n, T(0));
      else
        gradient_row<A>(dx + r * n, pg[r * step], x + r * n, n, t[r], stat + 2 * r, spec.smoothing);
    });
  });
}

template <Isa I>
void cross_entropy_and_gradient(const Tensor& losses, const Tensor& dlogits, const Tensor& g, const Tensor& logits,
                                const Tensor& target, CrossEntropySpec spec) {
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    const int64_t n = logits.size(-1), step = g.strides().v[0];
    const T* x = logits.data<T>();
    const int64_t* t = target.data<int64_t>();
    const A* pg = g.data<A>();
    A* loss = losses.mutable_data<A>();
    T* dx = dlogits.mutable_data<T>();
    for_rows(logits, [=](int64_t r) {
      if (t[r] == spec.ignored) {
        loss[r] = 0;
        std::fill(dx + r * n, dx + (r + 1) * n, T(0));
        return;
      }
      A stats[2];
      loss[r] = loss_row(stats, x + r * n, n, t[r], spec.smoothing);
      gradient_row<A>(dx + r * n, pg[r * step], x + r * n, n, t[r], stats, spec.smoothing);
    });
  });
}

template <Isa I> void cross_entropy_scale(const Tensor& scale, const Tensor& target, int64_t ignored, bool mean) {
  const int64_t* t = target.data<int64_t>();
  const int64_t rows = target.numel() - std::count(t, t + target.numel(), ignored);
  visit_floating(scale.dtype(), "cross_entropy",
                 [&]<class T>() { *scale.mutable_data<T>() = CrossEntropySpec::scale<T>(rows, mean); });
}

template <Isa I> void cross_entropy_total(const Tensor& total, const Tensor& losses, const Tensor& scale) {
  visit_floating(total.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    const A* loss = losses.data<A>();
    const auto [sum] = sum_row<A, 1>(
        losses.numel(), [&](int64_t i, auto lanes, Vec<A>* acc) { acc[0] += lanes.keep(lanes.load(loss + i)); });
    *total.mutable_data<T>() = T(sum * *scale.data<A>());
  });
}

template void cross_entropy<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, CrossEntropySpec);
template void cross_entropy_backward<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                              CrossEntropySpec);
template void cross_entropy_and_gradient<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                  const Tensor&, CrossEntropySpec);
template void cross_entropy_scale<kTarget>(const Tensor&, const Tensor&, int64_t, bool);
template void cross_entropy_total<kTarget>(const Tensor&, const Tensor&, const Tensor&);

}  // namespace isonorm::kernels::cpu
