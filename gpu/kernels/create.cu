// fill: dst = value, any dtype and strides.
//
// fill_packs: dst contiguous and at a multiple of 16 bytes: each thread stores 16 bytes (the bandwidth of memory is all
// there is), the thread at the end what is left, element by element. Blocks of 256 threads, one pack for each.
// fill_walk: any other: each thread stores one element. Blocks of 256 threads.
// Both write every element once and read nothing.
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

}  // namespace isonorm::gpu
