// Kernels that compute one element of a result from the same element of each operand. There are two ways to go over the
// elements.
//
// packs: along the innermost dimension every operand has stride 1 or 0, and the elements of a thread begin at a
// multiple of their bytes. A thread loads, computes and stores N neighbours at once. This covers contiguous and
// broadcast operands, and views whose rows are whole and aligned.
//
// places: any other strides and addresses, element by element, neighbours in neighbouring threads.
#pragma once

#include <algorithm>
#include <utility>

#include "core/formulas/pointwise.h"
#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/walk.cuh"

namespace isonorm::gpu {

inline constexpr int kElementThreads = 256;

// The argument that describes K tensors, the result first, to a kernel. A thread has `each` elements.
template <int K> struct Elements {
  Walk<K> walk;
  bool packs;

  // bytes[n]: size of `each` elements of tensor n.
  Elements(const Loop<K>& loop, int each, const void* const (&address)[K], const int (&bytes)[K])
      : walk(loop), packs(loop.stride[0][loop.rank - 1] == 1) {
    const int last = loop.rank - 1;
    if (last > 0 && loop.size[last] % each != 0) packs = false;
    for (int n = 0; n < K; ++n) {
      if (loop.stride[n][last] == 0) continue;
      if (loop.stride[n][last] != 1 || reinterpret_cast<uintptr_t>(address[n]) % static_cast<uintptr_t>(bytes[n]))
        packs = false;
      for (int d = 0; d < last; ++d)
        if (loop.stride[n][d] % each != 0) packs = false;
    }
  }
};

// The N elements at p, or the element at p N times if the stride is 0.
template <int N, class T> __device__ __forceinline__ Pack<T, N> load_or_spread(const T* p, int64_t stride) {
  if (stride != 0) return load<N>(p);
  Pack<T, N> pack;
  const T v = *p;
#pragma unroll
  for (int k = 0; k < N; ++k) pack.v[k] = v;
  return pack;
}

template <class R, int N, class F, class... T>
__device__ __forceinline__ Pack<R, N> map_packs(const F& f, const Pack<T, N>&... in) {
  Pack<R, N> out;
#pragma unroll
  for (int k = 0; k < N; ++k) out.v[k] = f(in.v[k]...);
  return out;
}

// out = f(in...) for the N elements of the calling thread. out may be an operand.
template <int N, size_t... I, class F, class R, class... T>
__device__ __forceinline__ void map_elements(std::index_sequence<I...>, const Elements<1 + sizeof...(T)>& e, const F& f,
                                             R* out, const T*... in) {
  constexpr int K = 1 + sizeof...(T);
  const Walk<K>& walk = e.walk;
  int64_t at[K], i, end, step;
  if (e.packs) {
    i = element() * N, end = walk.count, step = 1;
    if (i >= end) return;
    if (i + N <= end) {
      walk.place(i, at);
      const int last = walk.rank - 1;
      store<N>(out + at[0], map_packs<R, N>(f, load_or_spread<N>(in + at[I + 1], walk.stride[I + 1][last])...));
      return;
    }
  } else {
    const int64_t first = int64_t{blockIdx.x} * blockDim.x * N;
    i = first + threadIdx.x, step = blockDim.x;
    end = first + step * N < walk.count ? first + step * N : walk.count;
  }
#pragma unroll 1
  for (; i < end; i += step) {
    walk.place(i, at);
    out[at[0]] = f(in[at[I + 1]]...);
  }
}

template <int N, class F, class R, class... T>
__global__ void __launch_bounds__(kElementThreads)
    map_kernel(Elements<1 + sizeof...(T)> e, F f, R* out, const T*... in) {
  map_elements<N>(std::index_sequence_for<T...>{}, e, f, out, in...);
}

// A tensor of known type that a kernel reads.
template <class T> struct Operand {
  const Tensor& tensor;
  const T* data;
  explicit Operand(const Tensor& t) : tensor(t), data(t.data<T>()) {}
};

// out = f(inputs...), each input broadcast to out's shape. `to` points to out's elements; f takes the operands' types
// and returns out's. A pack is 16 bytes of the widest type. Blocks have 256 threads, and each thread has a pack.
template <class F, class R, class... T>
void map(const char* name, const F& f, const Tensor& out, R* to, const Operand<T>&... in) {
  constexpr int K = 1 + sizeof...(T), N = 16 / static_cast<int>(std::max({sizeof(R), sizeof(T)...}));
  if (out.numel() == 0) return;
  void (*kernel)(Elements<K>, F, R*, const T*...) = &map_kernel<N, F, R, T...>;
  const Elements<K> e(loop_over(out, in.tensor...), N, {to, in.data...},
                      {N * static_cast<int>(sizeof(R)), N * static_cast<int>(sizeof(T))...});
  launch(name, kernel, one_each(ceil_div(out.numel(), N), kElementThreads), stream_of(out), e, f, to, in.data...);
}

// Calls f.template operator()<Op>() with the op at position `op` of the list.
template <class F, class... Ops> void visit_op(int op, ops::List<Ops...>, const F& f) {
  int i = 0;
  (void)((i++ == op && (f.template operator()<Ops>(), true)) || ...);
}

}  // namespace isonorm::gpu
