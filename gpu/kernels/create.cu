// fill: dst = value, any dtype and strides. ramp: out[i] = begin + i step, rank 1, any stride and dtype, computed in
// f64 and converted once. triangle: x at or below (above) a diagonal of its last two dimensions, 0 elsewhere;
// contiguous, any dtype.
//
// fill_packs: for dst contiguous and at a multiple of 16 bytes. Each thread stores 16 bytes (only memory bandwidth
// matters), the last thread stores the rest element by element. Blocks of 256 threads, one pack for each.
// fill_walk: for any other dst. Each thread stores one element. Blocks of 256 threads.
// Both write every element once and read nothing.
// ramp_elements: one element for each thread, blocks of 256. Without contraction: the same bits as on the CPU.
// triangle_elements: each thread has 16 bytes of neighbours in memory. It counts rows and columns from
// its first element on, so that it divides only once. Blocks of 256 threads. Reads the kept elements and writes every
// element once.
#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

template <class T> __global__ void __launch_bounds__(256) fill_packs(T* dst, int64_t n, T value) {
  constexpr int N = kPack<T>;
  const int64_t i = element() * N;
  if (i + N <= n) {
    Pack<T, N> pack;
    for (int k = 0; k < N; ++k) pack.v[k] = value;
    store<N>(dst + i, pack);
  } else {
    for (int64_t k = i; k < n; ++k) dst[k] = value;
  }
}

template <class T> __global__ void __launch_bounds__(256) fill_walk(T* dst, Walk<1> walk, T value) {
  const int64_t e = element();
  if (e >= walk.count) return;
  int64_t at[1];
  walk.place(e, at);
  dst[at[0]] = value;
}

template <class T>
__global__ void __launch_bounds__(256) ramp_elements(T* out, int64_t n, int64_t stride, double begin, double step) {
  const int64_t i = element();
  if (i < n) out[i * stride] = static_cast<T>(begin + static_cast<double>(i) * step);
}

// x [..., rows, columns] of n elements.
struct Triangle {
  int64_t n, rows, columns, diagonal;
  bool lower;
};

template <class T>
__global__ void __launch_bounds__(256) triangle_elements(T* out, const T* x, Triangle t, bool packs) {
  constexpr int N = kPack<T>;
  const int64_t first = element() * N;
  if (first >= t.n) return;
  int64_t i = first / t.columns % t.rows, j = first % t.columns;
  Pack<T, N> pack;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const bool kept = t.lower ? j - i <= t.diagonal : j - i >= t.diagonal;
    pack.v[k] = kept && first + k < t.n ? x[first + k] : T(0);
    if (++j == t.columns) {
      j = 0;
      if (++i == t.rows) i = 0;
    }
  }
  if (packs && first + N <= t.n) {
    store<N>(out + first, pack);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (first + k < t.n) out[first + k] = pack.v[k];
  }
}

}  // namespace

void fill(const Tensor& dst, double value) {
  if (dst.numel() == 0) return;
  visit_all(dst.dtype(), [&]<class T>() {
    T* p = write<T>(dst);
    if (dst.is_contiguous() && aligned(p))
      launch("fill.packs", &fill_packs<T>, one_each(ceil_div(dst.numel(), kPack<T>)), stream_of(dst), p, dst.numel(),
             static_cast<T>(value));
    else
      launch("fill.walk", &fill_walk<T>, one_each(dst.numel()), stream_of(dst), p, Walk<1>(loop_over(dst)),
             static_cast<T>(value));
  });
}

void ramp(const Tensor& out, double begin, double step) {
  if (out.numel() == 0) return;
  visit_all(out.dtype(), [&]<class T>() {
    launch("ramp", &ramp_elements<T>, one_each(out.numel()), stream_of(out), write<T>(out), out.numel(),
           out.strides().v[0], begin, step);
  });
}

void triangle(const Tensor& out, const Tensor& x, int64_t diagonal, bool lower) {
  if (out.numel() == 0) return;
  visit_all(x.dtype(), [&]<class T>() {
    T* po = write<T>(out);
    const Triangle t{x.numel(), x.size(-2), x.size(-1), diagonal, lower};
    launch("triangle", &triangle_elements<T>, one_each(ceil_div(t.n, kPack<T>)), stream_of(out), po, x.data<T>(), t,
           aligned(po));
  });
}

}  // namespace isonorm::gpu
