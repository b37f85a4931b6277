// Random fills (uniform, normal, exponential, bernoulli, random_integers, truncated_normal, random_permutation) and
// dropout, with the same bits as on the CPU: the formulas are in core/formulas/distributions.h, and this file is
// compiled without contraction.
//
// draw_blocks: in each run of 128 elements, 64 Philox blocks serve the first 64 elements with their lower bits and the
// others with their upper bits (philox_place). A thread computes neighbouring Philox blocks, one for each value of the
// dtype that fits into 16 bytes (at most 8), and stores its two rows of neighbours, 64 elements apart. Blocks of 256
// threads. Writes every element once.
//
// drop_blocks: the same with Philox blocks of four parts: four rows of neighbours, 64 elements apart. Reads and writes
// every element once; there is no mask in memory.
//
// truncated_elements: a thread for each element, which draws until it hits: 1000 times on average in the worst case
// that the op allows.
//
// random_permutation is sequential (swap by swap): the host computes it and copies it.
#include "core/formulas/distributions.h"
#include "core/kernels/random.h"
#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"
#include "gpu/steps/capture.h"
#include "gpu/transfer.h"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

constexpr int64_t kRun = kPhiloxLanes;
template <class T> inline constexpr int kNeighbours = kPack<T> < 8 ? kPack<T> : 8;

// Stores the elements from `first` to first + N - 1 that are below n.
template <int N, class T>
__device__ __forceinline__ void put(T* out, int64_t n, int64_t first, const Pack<T, N>& v, bool packs) {
  if (packs && first + N <= n) return store<N>(out + first, v);
#pragma unroll
  for (int k = 0; k < N; ++k)
    if (first + k < n) out[first + k] = v.v[k];
}
template <int N, class T> __device__ __forceinline__ Pack<T, N> get(const T* x, int64_t n, int64_t first, bool packs) {
  if (packs && first + N <= n) return load<N>(x + first);
  Pack<T, N> v;
#pragma unroll
  for (int k = 0; k < N; ++k) v.v[k] = first + k < n ? x[first + k] : T(0);
  return v;
}

// The generator's state for a kernel. In a graph, `base` is the state at the beginning of this replay, and `state` is
// relative to it.
struct Draws {
  Generator state;
  const Generator* base;  // null: none

  explicit Draws(Generator drawn) : state(drawn), base(capture() ? capture()->generator(state) : nullptr) {}
  __device__ __forceinline__ Generator from() const {
    return base ? Generator{base->seed, base->offset + state.offset} : state;
  }
};

// Both values of a block, from 64 bits each.
template <class F> struct Each {
  F draw;
  template <class T> __device__ __forceinline__ void operator()(const PhiloxBlock& b, T& v0, T& v1) const {
    v0 = draw(b.wide(0)), v1 = draw(b.wide(1));
  }
};
template <class T> struct Pair {
  Normal<T> scaled;
  __device__ __forceinline__ void operator()(const PhiloxBlock& b, T& v0, T& v1) const {
    double z0, z1;
    box_muller(unit_interval(b.wide(0)), unit_interval(b.wide(1)), z0, z1);
    v0 = scaled(z0), v1 = scaled(z1);
  }
};

template <class F, class T>
__global__ void __launch_bounds__(256) draw_blocks(T* out, int64_t n, Draws draws, F draw, bool packs) {
  constexpr int N = kNeighbours<T>;
  const Generator state = draws.from();
  const int64_t block = element() * N, first = block / kRun * 2 * kRun + block % kRun;
  if (first >= n) return;
  Pack<T, N> v0, v1;
#pragma unroll
  for (int k = 0; k < N; ++k)
    draw(philox(state.seed, state.offset + static_cast<uint64_t>(block + k)), v0.v[k], v1.v[k]);
  put<N>(out, n, first, v0, packs);
  put<N>(out, n, first + kRun, v1, packs);
}

template <class T>
__global__ void __launch_bounds__(256)
    drop_blocks(T* out, const T* x, int64_t n, Draws draws, Dropout<acc_t<T>> drop, bool packs) {
  constexpr int N = kNeighbours<T>;
  const Generator state = draws.from();
  const int64_t block = element() * N, first = block / kRun * 4 * kRun + block % kRun;
  if (first >= n) return;
  Pack<T, N> v[4];
#pragma unroll
  for (int part = 0; part < 4; ++part) v[part] = get<N>(x, n, first + part * kRun, packs);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const PhiloxBlock b = philox(state.seed, state.offset + static_cast<uint64_t>(block + k));
#pragma unroll
    for (int part = 0; part < 4; ++part)
      v[part].v[k] = static_cast<T>(drop(static_cast<acc_t<T>>(v[part].v[k]), b.word[part]));
  }
#pragma unroll
  for (int part = 0; part < 4; ++part) put<N>(out, n, first + part * kRun, v[part], packs);
}

template <class T>
__global__ void __launch_bounds__(256) truncated_elements(T* out, int64_t n, Draws draws, TruncatedNormal<T> draw) {
  const int64_t e = element();
  if (e < n) out[e] = draw(draws.from(), e);
}

// The threads for n elements, if a Philox block serves `parts` elements.
template <class T> Shape threads_for(int64_t n, int parts) {
  return one_each(ceil_div(static_cast<int64_t>(philox_blocks(n, parts)), kNeighbours<T>));
}

template <class T, class F> void draw(const char* name, const Tensor& out, Generator state, const F& f) {
  const int64_t n = out.numel();
  if (n == 0) return;
  T* p = write<T>(out);
  launch(name, &draw_blocks<F, T>, threads_for<T>(n, 2), stream_of(out), p, n, Draws(state), f, aligned(p));
}

}  // namespace

void uniform(const Tensor& out, double lo, double hi, Generator state) {
  visit_floating(out.dtype(), "uniform",
                 [&]<class T>() { draw<T>("uniform", out, state, Each<Uniform<T>>{Uniform<T>(lo, hi)}); });
}

void normal(const Tensor& out, double mean, double deviation, Generator state) {
  visit_floating(out.dtype(), "normal", [&]<class T>() {
    draw<T>("normal", out, state, Pair<T>{Normal<T>{mean, deviation}});
  });
}

void exponential(const Tensor& out, Generator state) {
  visit_floating(out.dtype(), "exponential",
                 [&]<class T>() { draw<T>("exponential", out, state, Each<Exponential<T>>{}); });
}

void bernoulli(const Tensor& out, double p, Generator state) {
  visit_all(out.dtype(), [&]<class T>() { draw<T>("bernoulli", out, state, Each<Bernoulli<T>>{{p}}); });
}

void random_integers(const Tensor& out, int64_t lo, int64_t hi, Generator state) {
  draw<int64_t>("randint", out, state, Each<Integers>{Integers(lo, hi)});
}

void truncated_normal(const Tensor& out, double mean, double deviation, double lo, double hi, Generator state) {
  visit_floating(out.dtype(), "truncated_normal", [&]<class T>() {
    const TruncatedNormal<T> draw(mean, deviation, lo, hi);
    if (out.numel() == 0) return;
    launch("truncated_normal", &truncated_elements<T>, one_each(out.numel()), stream_of(out), write<T>(out),
           out.numel(), Draws(state), draw);
  });
}

void random_permutation(const Tensor& out, Generator state) {
  if (out.numel() == 0) return;
  const Tensor there = empty(out.shape(), {DType::i64, kCpu});
  kernels::cpu::random_permutation(there, state);
  write<int64_t>(out);
  transfer(out, there);
}

void dropout(const Tensor& out, const Tensor& x, double p, Generator state) {
  const int64_t n = out.numel();
  if (n == 0) return;
  visit_floating(out.dtype(), "dropout", [&]<class T>() {
    T* po = write<T>(out);
    const T* px = x.data<T>();
    launch("dropout", &drop_blocks<T>, threads_for<T>(n, 4), stream_of(out), po, px, n, Draws(state),
           Dropout<acc_t<T>>(p), aligned(po, px));
  });
}

}  // namespace isonorm::gpu
