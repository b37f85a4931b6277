// rotary: y[2i] = x[2i] c - x[2i+1] s, y[2i+1] = x[2i] s + x[2i+1] c for the heads that are rotated; other heads are
// copied. The other form has pairs i and size/2 + i. x, y [outer, time, heads, size] contiguous, f32, f64 or bf16;
// cosine, sine [time, size/2] of the accumulation type.
//
// A block has a row of heads x size elements; its threads take 16 bytes of neighbours at a time. All
// heads read the same size/2 cosines and sines, which stay in the L1 cache. Each block of 128 threads has one row, so
// that no index of the large tensor is divided. If packs do not fit the heads or the addresses, threads take a pair at
// a time. Reads x and writes y once.
#include "core/kernels/attention.h"

#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

// kPacks: a thread takes packs of neighbours, else a single pair.
template <class T, bool kPacks>
__global__ void __launch_bounds__(128)
    rotary_rows(T* y, const T* x, const acc_t<T>* cosine, const acc_t<T>* sine, kernels::RotaryShape s) {
  using A = acc_t<T>;
  constexpr int N = kPacks ? kPack<T> : 2;
  const int64_t row = s.heads * s.size, turned = s.turned * s.size, time = blockIdx.x % s.time;
  x += blockIdx.x * row;
  y += blockIdx.x * row;
  cosine += time * (s.size / 2);
  sine += time * (s.size / 2);
  const A sign = s.back ? A(-1) : A(1);
  for (int64_t j = int64_t{threadIdx.x} * N; j < row; j += int64_t{blockDim.x} * N) {
    Pack<T, N> v;
    if constexpr (kPacks)
      v = load<N>(x + j);
    else
      v.v[0] = x[j], v.v[1] = x[j + 1];
    if (j < turned) {
      const int64_t i = j % s.size / 2;
      const Pack<A, N / 2> c = load<N / 2>(cosine + i), d = load<N / 2>(sine + i);
#pragma unroll
      for (int k = 0; k < N / 2; ++k) {
        const A a = static_cast<A>(v.v[2 * k]), b = static_cast<A>(v.v[2 * k + 1]), e = sign * d.v[k];
        v.v[2 * k] = static_cast<T>(a * c.v[k] - b * e);
        v.v[2 * k + 1] = static_cast<T>(a * e + b * c.v[k]);
      }
    }
    if constexpr (kPacks)
      store<N>(y + j, v);
    else
      y[j] = v.v[0], y[j + 1] = v.v[1];
  }
}

// Pairs i and size/2 + i: a thread has N neighbours of a first half and the same of the second; it rotates or copies
// both.
template <class T, int N>
__global__ void __launch_bounds__(128)
    rotary_halves(T* y, const T* x, const acc_t<T>* cosine, const acc_t<T>* sine, kernels::RotaryShape s) {
  using A = acc_t<T>;
  const int64_t half = s.size / 2, row = s.heads * s.size, time = blockIdx.x % s.time;
  x += blockIdx.x * row;
  y += blockIdx.x * row;
  cosine += time * half;
  sine += time * half;
  const A sign = s.back ? A(-1) : A(1);
  for (int64_t j = int64_t{threadIdx.x} * N; j < row / 2; j += int64_t{blockDim.x} * N) {
    const int64_t head = j / half, i = j % half, at = head * s.size + i;
    Pack<T, N> v = load<N>(x + at), w = load<N>(x + at + half);
    if (head < s.turned) {
      const Pack<A, N> c = load<N>(cosine + i), d = load<N>(sine + i);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const A a = static_cast<A>(v.v[k]), b = static_cast<A>(w.v[k]), e = sign * d.v[k];
        v.v[k] = static_cast<T>(a * c.v[k] - b * e);
        w.v[k] = static_cast<T>(a * e + b * c.v[k]);
      }
    }
    store<N>(y + at, v);
    store<N>(y + at + half, w);
  }
}

}  // namespace

void rotary(kernels::RotaryShape s, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  if (x.numel() == 0) return;
  visit_floating(x.dtype(), "rotary", [&]<class T>() {
    using A = acc_t<T>;
    T* py = write<T>(y);
    const T* px = x.data<T>();
    const A *c = cosine.data<A>(), *d = sine.data<A>();
    const bool packs = s.size % (s.halves ? 2 * kPack<T> : kPack<T>) == 0 && aligned(py, px, c, d);
    const auto pairs = packs ? &rotary_rows<T, true> : &rotary_rows<T, false>;
    const auto halves = packs ? &rotary_halves<T, kPack<T>> : &rotary_halves<T, 1>;
    launch("rotary", s.halves ? halves : pairs, blocks_of(s.outer * s.time, 128), stream_of(x), py, px, c, d, s);
  });
}

}  // namespace isonorm::gpu
