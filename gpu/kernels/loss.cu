// cross_entropy and its gradient, both together, cross_entropy_scale, cross_entropy_total.
//
// losses_of_rows: a team (gpu/rows.cuh) for each row, in three passes: the largest logit, the sum of exponentials below
// it, and the gradient if it is wanted. A row of logits is too large for caches and is read from memory once: it is
// kept in shared memory. A thread reads only the packs there that it loaded itself, so no barrier is needed. Two blocks
// of up to kKept bytes share a multiprocessor; one computes while the other reads. Longer rows are read again for each
// pass. The gradient may overwrite the logits: each element is read and written by one thread.
//
// gradient_of_rows: only the last of these passes; reads and writes every element once, in place or not.
//
// count_rows, add_losses: one block, whose threads take elements in turn; sums in a fixed tree. One number is written.
#include "core/formulas/math.h"
#include "core/kernels/loss.h"
#include "gpu/rows.cuh"
#include "gpu/tensor_core.cuh"

namespace isonorm::gpu {
namespace {

using kernels::CrossEntropySpec;

// Bytes of a block's rows in shared memory: together with the kernel's own at most 99 KB, which all devices have.
constexpr int64_t kKept = 100864;

// True if a row has a loss. A row with an invalid target, an error that is thrown later, has none.
__device__ __forceinline__ bool counts(int64_t target, const Rows& rows, const CrossEntropySpec& spec) {
  return target != spec.ignored && static_cast<uint64_t>(target) < static_cast<uint64_t>(rows.width);
}

// e^x for x <= 0 and logits of T: for bf16 by the special function unit, whose error of 2 ulp of f32 does not show in
// bf16.
template <class T> __device__ __forceinline__ acc_t<T> exp_of(acc_t<T> x) {
  if constexpr (std::is_same_v<T, bf16>)
    return fast_exp2(x * 1.442695041f);
  else
    return exp_below(x);
}

// Calls f(i, n) for each pack of the calling thread: at element i of the row, with n elements. whole: all packs are
// full.
template <class T, bool whole, class F>
__device__ __forceinline__ void for_parts(const Team& team, const Rows& rows, const F& f) {
  constexpr int N = kPack<T>;
  if constexpr (whole)
    for (int i = team.thread * N; i < static_cast<int>(rows.width); i += team.size * N) f(int64_t{i}, N);
  else
    for_packs<T, false>(team, rows, [&](int64_t i, int n, int) { f(i, n); });
}

// A row as its passes read it: from `kept` in the block's shared memory, or from memory if that is null. whole: it is
// kept and has only full packs.
template <class T, bool whole> struct Logits {
  const T* row;
  T* kept;
  bool packed;

  // Each thread loads its own packs.
  __device__ __forceinline__ void bring(const Team& team, const Rows& rows) const {
    if (!whole && !kept) return;
    for_parts<T, whole>(team, rows, [&](int64_t i, int n) {
      if constexpr (!whole)
        if (!packed) {
          for (int k = 0; k < n; ++k) kept[i + k] = row[i + k];
          return;
        }
      copy_async(kept + i, row + i);
    });
    commit_copies();
    wait_copies<0>();
  }
  __device__ __forceinline__ Pack<T, kPack<T>> at(int64_t i, int n) const {
    if constexpr (whole)
      return load<kPack<T>>(kept + i);
    else
      return kept ? load_part(kept + i, n, true) : load_part(row + i, n, packed);
  }
};

// A row x with target t: m, the largest logit; s = ln sum exp(x - m); x_t - m; sum (x - m) if it is wanted.
template <class A> struct Sums { A top, log_sum, at_target, rest; };

// Every thread of the team gets the same values. The sum of exponentials leaves out one that is 1 (the largest). If
// this one has nearly all of the sum, adding it would round off digits of the others; ln(1 + rest) keeps them.
template <class T, bool whole>
__device__ __forceinline__ Sums<acc_t<T>> sums_of(const Team& team, const Rows& rows, const Logits<T, whole>& logits,
                                                  int64_t target, bool spread) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  A top[1] = {-std::numeric_limits<A>::infinity()};
  for_parts<T, whole>(team, rows, [&](int64_t i, int n) {
    const auto p = logits.at(i, n);
    for (int k = 0; k < N; ++k)
      if (k < n) top[0] = Larger()(A(p.v[k]), top[0]);
  });
  team_reduce<Larger>(team, top, shared<TeamRoom<A, 1>>());
  A sums[4] = {0, 0, 0, 0};  // exponentials below 1, number of ones, x_t - m, x - m (a class at -inf would make it NaN)
  for_parts<T, whole>(team, rows, [&](int64_t i, int n) {
    const auto p = logits.at(i, n);
    const int64_t at = target - i;
    for (int k = 0; k < N; ++k) {
      if (k >= n) continue;
      const A x = A(p.v[k]) - top[0];
      sums[0] += x == 0 ? A(0) : exp_of<T>(x);
      sums[1] += x == 0 ? A(1) : A(0);
      if (spread) sums[3] += x;
    }
    if (at < 0 || at >= n) return;
    for (int k = 0; k < N; ++k)
      if (k == at) sums[2] = A(p.v[k]) - top[0];
  });
  team_reduce<Plus>(team, sums, shared<TeamRoom<A, 4>>());
  return {top[0], math::log1p(sums[0] + (sums[1] - 1)), sums[2], sums[3]};
}

// The gradient of a row with known m and s, times factor.
template <class T, bool whole>
__device__ __forceinline__ void write_gradient(T* to, const Team& team, const Rows& rows,
                                               const Logits<T, whole>& logits, int64_t target, acc_t<T> top,
                                               acc_t<T> log_sum, acc_t<T> factor, const CrossEntropySpec& spec) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  const A base = static_cast<A>(spec.smoothing / static_cast<double>(rows.width));
  for_parts<T, whole>(team, rows, [&](int64_t i, int n) {
    auto p = logits.at(i, n);
    const int64_t at = target - i;
    A v[N];
    for (int k = 0; k < N; ++k) v[k] = (A(p.v[k]) - top) - log_sum;
    for (int k = 0; k < N; ++k) p.v[k] = T(factor * (exp_of<T>(v[k]) - base));
    if (at >= 0 && at < n)
      for (int k = 0; k < N; ++k)  // p - 1 keeps its digits
        if (k == at) p.v[k] = T(factor * (math::expm1(v[k]) + (static_cast<A>(spec.smoothing) - base)));
    store_part(to + i, p, n, whole || rows.packed);
  });
}
template <class T> __device__ __forceinline__ void write_zeros(T* to, const Team& team, const Rows& rows) {
  const Pack<T, kPack<T>> nothing{};
  for_packs<T, false>(team, rows, [&](int64_t i, int n, int) { store_part(to + i, nothing, n, rows.packed); });
}

// The arguments of a kernel over rows of logits.
template <class T> struct Asked {
  using A = acc_t<T>;
  const T* logits;
  const int64_t* targets;
  A *losses, *stats;  // as in core/kernels/loss.h; stats: null if not wanted
  T* dlogits;         // null: no gradient
  const A* g;         // row r has g[r step]
  int64_t step;
  Rows rows;
  int64_t kept;  // elements from row to row in shared memory; 0: rows are read again for each pass
  CrossEntropySpec spec;
};

template <class T, bool whole> __global__ void __launch_bounds__(256) losses_of_rows(const Asked<T> a) {
  using A = acc_t<T>;
  const Team team(a.rows);
  const int64_t r = team.number, row = r * a.rows.width;
  if (r >= a.rows.count) return;  // the whole team leaves
  const int64_t target = a.targets[r];
  if (!counts(target, a.rows, a.spec)) {
    if (team.thread == 0) a.losses[r] = 0;
    if (a.dlogits) write_zeros(a.dlogits + row, team, a.rows);
    return;
  }
  const int64_t place = a.rows.warps > 1 ? 0 : warp();
  const Logits<T, whole> logits{a.logits + row, a.kept > 0 ? dynamic_shared<T>() + place * a.kept : nullptr,
                                a.rows.packed};
  logits.bring(team, a.rows);
  const Sums<A> s = sums_of<T, whole>(team, a.rows, logits, target, a.spec.smoothing != 0);
  if (team.thread == 0) {
    const A loss = s.log_sum - static_cast<A>(1 - a.spec.smoothing) * s.at_target;
    a.losses[r] = a.spec.smoothing != 0
                      ? loss - static_cast<A>(a.spec.smoothing / static_cast<double>(a.rows.width)) * s.rest
                      : loss;
    if (a.stats) a.stats[2 * r] = s.top, a.stats[2 * r + 1] = s.log_sum;
  }
  if (a.dlogits)
    write_gradient<T, whole>(a.dlogits + row, team, a.rows, logits, target, s.top, s.log_sum, a.g[r * a.step], a.spec);
}

template <class T> __global__ void __launch_bounds__(256) gradient_of_rows(const Asked<T> a) {
  const Team team(a.rows);
  const int64_t r = team.number, row = r * a.rows.width;
  if (r >= a.rows.count) return;  // the whole team leaves
  const int64_t target = a.targets[r];
  if (!counts(target, a.rows, a.spec)) return write_zeros(a.dlogits + row, team, a.rows);
  write_gradient<T, false>(a.dlogits + row, team, a.rows, {a.logits + row, nullptr, a.rows.packed}, target,
                           a.stats[2 * r], a.stats[2 * r + 1], a.g[r * a.step], a.spec);
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
  if (threadIdx.x == 0) *scale = kernels::CrossEntropySpec::scale<T>(rows, mean);
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

namespace {

// dlogits, g: undefined if there is no gradient. losses: undefined if only the gradient is wanted.
template <class T>
Asked<T> asked(const Tensor& losses, const Tensor& stats, const Tensor& dlogits, const Tensor& g, const Tensor& logits,
               const Tensor& target, CrossEntropySpec spec) {
  using A = acc_t<T>;
  T* const dx = write_or_null<T>(dlogits);
  return {.logits = logits.data<T>(),
          .targets = target.data<int64_t>(),
          .losses = write_or_null<A>(losses),
          .stats = losses.defined() ? write_or_null<A>(stats) : const_cast<A*>(stats.data<A>()),
          .dlogits = dx,
          .g = read_or_null<A>(g),
          .step = g.defined() ? g.strides().v[0] : 0,
          .rows = rows_of<T>(logits, logits.data<T>(), dx),
          .kept = 0,
          .spec = spec};
}

template <class T> void launch_losses(Asked<T> a, const Stream& stream) {
  Shape shape = a.rows.shape();
  const int64_t pitch = round_up(a.rows.width, kPack<T>);
  const int64_t bytes = a.rows.teams() * pitch * static_cast<int64_t>(sizeof(T));
  if (bytes <= kKept) a.kept = pitch, shape.dynamic = static_cast<size_t>(bytes);
  const bool whole = a.kept > 0 && a.rows.packed;
  launch("cross_entropy.losses", whole ? &losses_of_rows<T, true> : &losses_of_rows<T, false>, shape, stream, a);
}

}  // namespace

void cross_entropy(const Tensor& losses, const Tensor& stats, const Tensor& logits, const Tensor& target,
                   CrossEntropySpec spec) {
  if (logits.numel() == 0) return;
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    launch_losses(asked<T>(losses, stats, {}, {}, logits, target, spec), stream_of(logits));
  });
}

void cross_entropy_and_gradient(const Tensor& losses, const Tensor& dlogits, const Tensor& g, const Tensor& logits,
                                const Tensor& target, CrossEntropySpec spec) {
  if (logits.numel() == 0) return;
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    launch_losses(asked<T>(losses, {}, dlogits, g, logits, target, spec), stream_of(logits));
  });
}

void cross_entropy_backward(const Tensor& dlogits, const Tensor& g, const Tensor& logits, const Tensor& target,
                            const Tensor& stats, CrossEntropySpec spec) {
  if (logits.numel() == 0) return;
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    const Asked<T> a = asked<T>({}, stats, dlogits, g, logits, target, spec);
    launch("cross_entropy_backward.rows", &gradient_of_rows<T>, a.rows.shape(), stream_of(logits), a);
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
