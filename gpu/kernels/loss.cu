// cross_entropy and its gradient, cross_entropy_scale, cross_entropy_total.
//
// losses_of_rows: a block for each row. Each thread keeps the maximum of what it has read and the sum of exponentials
// below it (online: Milakov and Gimelshein, 1805.02867), so a row of logits, which no cache holds, is read once; once
// more where the target's weight is smoothed.
// gradient_of_rows: a block for each row: reads and writes every element once, in place or not. The thread that has the
// target's element reads it before it writes it, and no other thread reads it.
// count_rows, add_losses: one block, whose threads take elements in turn; sums in a fixed tree. One number is written.
#include "core/formulas/math.h"
#include "core/kernels/loss.h"
#include "gpu/rows.cuh"

namespace isonorm::gpu {
namespace {

using kernels::CrossEntropySpec;

// sum exp(x - top) of what a thread has read. In f64: where one class has all but a little, 1 - p is that little, of
// which a sum near 1 in f32 would round off digits.
template <class A> struct Online {
  A top = -std::numeric_limits<A>::infinity();
  double sum = 0;

  __device__ __forceinline__ void raise_to(A higher) {
    sum *= exp_below(top == higher ? A(0) : top - higher);
    top = higher;
  }
};

// Whether a row has a loss. One whose target is outside, which is thrown later, has none either.
__device__ __forceinline__ bool counts(int64_t target, const Rows& rows, const CrossEntropySpec& spec) {
  return target != spec.ignored && static_cast<uint64_t>(target) < static_cast<uint64_t>(rows.width);
}

// Rows of c logits; loss and stats as in core/kernels/loss.h.
template <class T>
__global__ void __launch_bounds__(256) losses_of_rows(acc_t<T>* losses, acc_t<T>* stats, const T* logits,
                                                      const int64_t* targets, Rows rows, CrossEntropySpec spec) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  const Team team(rows);
  const int64_t r = team.number;
  if (r >= rows.count) return;  // a whole team
  const int64_t target = targets[r];
  const T* x = logits + r * rows.width;
  if (!counts(target, rows, spec)) {
    if (team.thread == 0) losses[r] = 0;
    return;
  }
  Online<A> seen;
  for_packs<T, false>(team, rows, [&](int64_t i, int n, int) {
    const auto p = load_part(x + i, n, rows.packed);
    A top = seen.top;
    for (int k = 0; k < N; ++k)
      if (k < n) top = Larger()(A(p.v[k]), top);
    seen.raise_to(top);
    if (top == -std::numeric_limits<A>::infinity()) return;  // all of them are: they add nothing to any other
    for (int k = 0; k < N; ++k)
      if (k < n) seen.sum += exp_below(A(p.v[k]) - top);
  });
  TeamRoom<A, 1>& room = shared<TeamRoom<A, 1>>();
  A top[1] = {seen.top};
  team_reduce<Larger>(team, top, room);
  double sum[1] = {seen.sum * exp_below(seen.top - top[0])};
  team_reduce<Plus>(team, sum, shared<TeamRoom<double, 1>>());
  A rest[1] = {0};  // sum (x - m) where it counts: a class at -inf would make it NaN
  if (spec.smoothing != 0) {
    for_packs<T, false>(team, rows, [&](int64_t i, int n, int) {
      const auto p = load_part(x + i, n, rows.packed);
      for (int k = 0; k < N; ++k)
        if (k < n) rest[0] += A(p.v[k]) - top[0];
    });
    team_reduce<Plus>(team, rest, room);
  }
  if (team.thread > 0) return;
  const A log_sum = static_cast<A>(math::log(sum[0]));
  stats[2 * r] = top[0];
  stats[2 * r + 1] = log_sum;
  const A loss = log_sum - static_cast<A>(1 - spec.smoothing) * (A(x[target]) - top[0]);
  losses[r] =
      spec.smoothing != 0 ? loss - static_cast<A>(spec.smoothing / static_cast<double>(rows.width)) * rest[0] : loss;
}

// g of row r at g[r step].
template <class T>
__global__ void __launch_bounds__(256)
    gradient_of_rows(T* dlogits, const acc_t<T>* g, int64_t step, const T* logits, const int64_t* targets,
                     const acc_t<T>* stats, Rows rows, CrossEntropySpec spec) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  const Team team(rows);
  const int64_t r = team.number, row = r * rows.width;
  if (r >= rows.count) return;  // a whole team
  const int64_t target = targets[r];
  if (!counts(target, rows, spec)) {
    const Pack<T, N> nothing{};
    for_packs<T, false>(team, rows,
                        [&](int64_t i, int n, int) { store_part(dlogits + row + i, nothing, n, rows.packed); });
    return;
  }
  const A top = stats[2 * r], log_sum = stats[2 * r + 1], factor = g[r * step];
  const A base = static_cast<A>(spec.smoothing / static_cast<double>(rows.width));
  for_packs<T, false>(team, rows, [&](int64_t i, int n, int) {
    auto p = load_part(logits + row + i, n, rows.packed);
    for (int k = 0; k < N; ++k) {
      const A v = (A(p.v[k]) - top) - log_sum;
      p.v[k] = T(factor * (i + k == target
                               ? math::expm1(v) + (static_cast<A>(spec.smoothing) - base)  // p - 1 keeps its digits
                               : exp_below(v) - base));
    }
    store_part(dlogits + row + i, p, n, rows.packed);
  });
}

template <class T>
__global__ void __launch_bounds__(512)
    count_rows(T* scale, const int64_t* targets, int64_t n, int64_t ignored, bool mean) {
  struct Room {
    int64_t v[32];
  };
  int64_t rows = 0;
  for (int64_t i = threadIdx.x; i < n; i += 512) rows += targets[i] != ignored;
  rows = block_reduce<Plus>(rows, shared<Room>().v);
  if (threadIdx.x == 0) *scale = T(mean ? 1 / static_cast<acc_t<T>>(rows) : acc_t<T>(1));
}

template <class T>
__global__ void __launch_bounds__(512) add_losses(T* total, const acc_t<T>* losses, int64_t n, const acc_t<T>* scale) {
  struct Room {
    acc_t<T> v[32];
  };
  acc_t<T> sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += 512) sum += losses[i];
  sum = block_reduce<Plus>(sum, shared<Room>().v);
  if (threadIdx.x == 0) *total = T(sum * *scale);
}

}  // namespace

void cross_entropy(const Tensor& losses, const Tensor& stats, const Tensor& logits, const Tensor& target,
                   CrossEntropySpec spec) {
  if (logits.numel() == 0) return;
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    const T* x = logits.data<T>();
    const Rows rows = rows_of<T>(logits, x);
    launch("cross_entropy.losses", &losses_of_rows<T>, rows.shape(), stream_of(logits), write<A>(losses),
           write<A>(stats), x, target.data<int64_t>(), rows, spec);
  });
}

void cross_entropy_backward(const Tensor& dlogits, const Tensor& g, const Tensor& logits, const Tensor& target,
                            const Tensor& stats, CrossEntropySpec spec) {
  if (logits.numel() == 0) return;
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    T* dx = write<T>(dlogits);
    const T* x = logits.data<T>();
    const Rows rows = rows_of<T>(logits, x, dx);
    launch("cross_entropy_backward.rows", &gradient_of_rows<T>, rows.shape(), stream_of(logits), dx, g.data<A>(),
           g.strides()[0], x, target.data<int64_t>(), stats.data<A>(), rows, spec);
  });
}

void cross_entropy_scale(const Tensor& scale, const Tensor& target, int64_t ignored, bool mean) {
  visit_floating(scale.dtype(), "cross_entropy", [&]<class T>() {
    launch("cross_entropy_scale.rows", &count_rows<T>, blocks_of(1, 512), stream_of(scale), write<T>(scale),
           target.data<int64_t>(), target.numel(), ignored, mean);
  });
}

void cross_entropy_total(const Tensor& total, const Tensor& losses, const Tensor& scale) {
  visit_floating(total.dtype(), "cross_entropy", [&]<class T>() {
    using A = acc_t<T>;
    launch("cross_entropy_total.rows", &add_losses<T>, blocks_of(1, 512), stream_of(total), write<T>(total),
           losses.data<A>(), losses.numel(), scale.data<A>());
  });
}

}  // namespace isonorm::gpu
