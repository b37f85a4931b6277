// The feed-forward block of a Transformer: y = gelu(x W1^T + b1) W2^T + b2, and its backward, by products
// (libraries/blas.h) and the kernels between them, unless a product's epilogue does their work.
//
// mlp.activate: g = gelu(h), and h in bf16 if that is wanted. mlp.slope: dh = dg gelu'(h), and gelu(h) for the gradient
// of W2. One thread for each 16 bytes of g, the last one for the rest; blocks of 256. Both read and write every number
// once and are bound by memory. Results may overwrite their inputs, element by element.
#include "core/formulas/math/gelu.h"
#include "core/kernels/mlp.h"
#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/libraries/blas.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

// Both kernels, for N neighbouring elements from i on.
template <class Form, int N, class T, class H> struct Neighbours {
  using A = acc_t<T>;

  static __device__ __forceinline__ void activate(T* g, const T* h, H* kept, int64_t i) {
    const Pack<T, N> in = load<N>(h + i);
    Pack<H, N> rounded;
    Pack<T, N> out;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      rounded.v[e] = static_cast<H>(in.v[e]);
      out.v[e] = static_cast<T>(Form::value(static_cast<A>(in.v[e])));
    }
    if (kept) store<N>(kept + i, rounded);
    store<N>(g + i, out);
  }

  static __device__ __forceinline__ void slope(T* dh, T* activated, const T* dg, const H* h, int64_t i) {
    const Pack<H, N> in = load<N>(h + i);
    const Pack<T, N> by = load<N>(dg + i);
    Pack<T, N> value, product;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const A x = static_cast<A>(in.v[e]);
      value.v[e] = static_cast<T>(Form::value(x));
      product.v[e] = static_cast<T>(static_cast<A>(by.v[e]) * Form::slope(x));
    }
    store<N>(activated + i, value);
    store<N>(dh + i, product);
  }
};

template <class Form, class T, class H>
__global__ void __launch_bounds__(256) activate(T* g, const T* h, H* kept, int64_t n, bool packs) {
  constexpr int N = kPack<T>;
  const int64_t i = element() * N;
  if (packs && i + N <= n) return Neighbours<Form, N, T, H>::activate(g, h, kept, i);
  for (int64_t k = i; k < i + N && k < n; ++k) Neighbours<Form, 1, T, H>::activate(g, h, kept, k);
}

template <class Form, class T, class H>
__global__ void __launch_bounds__(256) slope(T* dh, T* activated, const T* dg, const H* h, int64_t n, bool packs) {
  constexpr int N = kPack<T>;
  const int64_t i = element() * N;
  if (packs && i + N <= n) return Neighbours<Form, N, T, H>::slope(dh, activated, dg, h, i);
  for (int64_t k = i; k < i + N && k < n; ++k) Neighbours<Form, 1, T, H>::slope(dh, activated, dg, h, k);
}

// x [rows, k] times w [k, n] or, if turned, times the transpose of w [n, k].
Product by_rows(DType dtype, int64_t rows, int64_t n, int64_t k, bool turned, bool bias) {
  Product p;  // field by field: nvcc 13.0 crashes on designated initializers
  p.m = rows;
  p.n = n;
  p.k = k;
  p.a = {k, 1};
  p.b = turned ? MatrixStrides{1, k} : MatrixStrides{n, 1};
  p.in = p.out = dtype;
  p.bias = bias;
  return p;
}

template <class T, class H>
void activate_all(const Stream& stream, T* g, const T* h, H* kept, int64_t n, bool tanh_form) {
  launch("mlp.activate", tanh_form ? &activate<math::TanhGelu, T, H> : &activate<math::ErfGelu, T, H>,
         one_each(ceil_div(n, kPack<T>)), stream, g, h, kept, n, aligned(g, h, kept));
}

template <class T, class H>
void slope_all(const Stream& stream, T* dh, T* g, const T* dg, const H* h, int64_t n, bool tanh_form) {
  launch("mlp.slope", tanh_form ? &slope<math::TanhGelu, T, H> : &slope<math::ErfGelu, T, H>,
         one_each(ceil_div(n, kPack<T>)), stream, dh, g, dg, h, n, aligned(dh, g, dg, h));
}

template <class T>
void forward(const Tensor& y, const Tensor& h, const Tensor& x, const kernels::MlpWeights& w, bool tanh_form) {
  const Stream& stream = stream_of(x);
  const int64_t rows = x.size(0), wide = w.w1.size(0), n = rows * wide;
  const bool rounds = h.defined() && h.dtype() != x.dtype();
  const Scratch memory(x.device(), n * static_cast<int64_t>(sizeof(T)));
  T *const g = memory.as<T>(), *const kept = h.defined() && !rounds ? write<T>(h) : nullptr;
  Product p = by_rows(dtype_of<T>, rows, wide, x.size(1), true, w.b1.defined());
  Operands o{kept ? kept : g, x.data<T>(), w.w1.data<T>(), read_or_null<T>(w.b1)};
  Product fused = p;
  fused.epilogue = Epilogue::gelu_tanh;
  fused.aux = kept;
  const Operands all{g, o.a, o.b, o.bias, kept};
  if (!tanh_form || rounds || !fused_product(fused, all, stream)) {
    product(p, o, stream);
    const T* const in = static_cast<const T*>(o.out);
    if constexpr (std::is_same_v<T, float>) {
      if (rounds)
        activate_all(stream, g, in, write<bf16>(h), n, tanh_form);
      else
        activate_all(stream, g, in, static_cast<bf16*>(nullptr), n, tanh_form);
    } else {
      activate_all(stream, g, in, static_cast<T*>(nullptr), n, tanh_form);
    }
  }
  p = by_rows(dtype_of<T>, rows, y.size(1), wide, true, w.b2.defined());
  product(p, {write<T>(y), g, w.w2.data<T>(), read_or_null<T>(w.b2)}, stream);
}

template <class T>
void backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
              const kernels::MlpWeights& w, bool tanh_form) {
  const Stream& stream = stream_of(dy);
  const int64_t rows = dy.size(0), wide = w.w1.size(0), in = w.w1.size(1), n = rows * wide;
  T *const to = write<T>(dh), *const g = write<T>(activated);
  const bool rounded = h.defined() && h.dtype() != dy.dtype();
  const T* const before = h.defined() && !rounded ? h.data<T>() : nullptr;  // may be g
  Product p = by_rows(dtype_of<T>, rows, wide, dy.size(1), false, false);
  Product fused = p;
  fused.epilogue = Epilogue::gelu_tanh_slope;
  fused.aux = true;
  const Operands all{to, dy.data<T>(), w.w2.data<T>(), nullptr, const_cast<T*>(before)};
  if (tanh_form && before && fused_product(fused, all, stream)) {
    activate_all(stream, g, before, static_cast<T*>(nullptr), n, tanh_form);
  } else {
    T* const dg = h.defined() ? to : g;
    product(p, {dg, all.a, all.b}, stream);
    if constexpr (std::is_same_v<T, float>)
      if (rounded) slope_all(stream, to, g, dg, h.data<bf16>(), n, tanh_form);
    if (!rounded) slope_all<T, T>(stream, to, g, dg, before ? before : to, n, tanh_form);
  }
  if (dx.defined())
    product(by_rows(dtype_of<T>, rows, in, wide, false, false), {write<T>(dx), to, w.w1.data<T>()}, stream);
}

}  // namespace

void mlp_forward(const Tensor& y, const Tensor& h, const Tensor& x, const kernels::MlpWeights& w, bool tanh_form) {
  visit_floating(x.dtype(), "mlp", [&]<class T>() { forward<T>(y, h, x, w, tanh_form); });
}
void mlp_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const kernels::MlpWeights& w, bool tanh_form) {
  visit_floating(dy.dtype(), "mlp", [&]<class T>() { backward<T>(dx, dh, activated, h, dy, w, tanh_form); });
}

}  // namespace isonorm::gpu
