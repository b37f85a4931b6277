// The feed-forward half of a block, a few rows at a time: what lies between its products does not leave the cache. The
// hidden entries are taken in the depth blocks of the second product, so that every element has the bits that products
// and activation one after the other would give it.
#include "core/kernels/mlp.h"

#include "core/cpu/bf16/mlp.h"
#include "core/cpu/gelu_form.h"
#include "core/cpu/gemm.h"
#include "core/cpu/nontemporal.h"
#include "core/cpu/target.h"

namespace isonorm::kernels::cpu {
namespace {

// w [out, in] as the matrix on the right of dy w.
template <class T> Packed<T> packed(const Tensor& w) { return {w.size(0), w.size(1), {w.data<T>(), w.size(1), 1}}; }

template <class T> From<T> bias(const Tensor& b, int64_t begin = 0) {
  return {b.defined() ? b.data<T>() + begin : nullptr, 0};
}

// What forward and backward exchange where it is kept as bf16; null elsewhere.
const bf16* rounded(const Tensor& h) { return h.defined() && h.dtype() == DType::bf16 ? h.data<bf16>() : nullptr; }

template <class To, class From> void convert(int64_t n, const From* from, To* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
}

// Stores what only a later kernel reads.
template <class T, class Lanes> void keep(T* to, Vec<T> v, const Lanes& lanes, bool nontemporal) {
  nontemporal ? store_nontemporal<T>(to, v) : lanes.store(to, lanes.choose(v, lanes.load(to)));
}

template <class Form, class T>
void forward(const Tensor& out, const Tensor& hidden, const Tensor& in, const MlpWeights& w) {
  const int64_t n = in.size(0), d = in.size(1), wide = w.w1.size(0), to = out.size(1);
  const Packed<T> w1 = Packed<T>::transposed(w.w1), w2 = Packed<T>::transposed(w.w2);
  const int64_t chunk = std::min(wide, w2.depth());
  const T* x = in.data<T>();
  bf16* const kept16 = rounded(hidden) ? hidden.mutable_data<bf16>() : nullptr;
  T *y = out.mutable_data<T>(), *kept = hidden.defined() && !kept16 ? hidden.mutable_data<T>() : nullptr;
  const bool nontemporal = kept && passes_caches<T>(hidden, wide);
  parallel_for(passing_rows(n, wide * (d + to)), [&](int64_t begin, int64_t end) {
    const FlushSubnormals flush;
    const int64_t rows = end - begin;
    const Workspace<T> memory(rows * (chunk + kPanel<T>));
    T *const g = memory.data(), *const edge = g + rows * chunk;
    for (int64_t p = 0; p < wide; p += chunk) {
      const int64_t count = std::min(chunk, wide - p);
      w1.multiply(rows, p, count, {x + begin * d, d, 1}, g, chunk, bias<T>(w.b1, p), edge);
      for (int64_t r = 0; r < rows; ++r) {
        T* const h = g + r * chunk;
        const int64_t at = (begin + r) * wide + p;
        if (kept16) convert(count, h, kept16 + at);
        for_lanes<T>(count, [&](int64_t i, auto lanes) {
          const Vec<T> v = lanes.load(h + i);
          if (kept) keep(kept + at + i, v, lanes, nontemporal);
          lanes.store(h + i, lanes.choose(map_lanes<T>(v, [](T a) { return Form::value(a); }), v));
        });
      }
      T* c = y + begin * to;
      pass_over(w2.block(p, 0), rows, to, Strided<T>{g, chunk, 1}, c, to, p == 0 ? bias<T>(w.b2) : From<T>{c, to},
                edge);
    }
    fence_nontemporal(nontemporal);
  });
}

template <class Form, class T>
void backward(const Tensor& dx_out, const Tensor& dh_out, const Tensor& activated, const Tensor& hidden,
              const Tensor& dy_in, const MlpWeights& w) {
  const int64_t n = dy_in.size(0), wide = w.w1.size(0), d = w.w1.size(1), to = dy_in.size(1);
  const Packed<T> w2 = packed<T>(w.w2), w1 = packed<T>(w.w1);
  const int64_t chunk = std::min(wide, w1.depth());
  const T* dy = dy_in.data<T>();
  const bf16* const kept16 = rounded(hidden);
  T *h = dh_out.mutable_data<T>(), *g = activated.mutable_data<T>();
  T* dx = dx_out.defined() ? dx_out.mutable_data<T>() : nullptr;
  const bool nontemporal = passes_caches<T>(activated, wide);
  parallel_for(passing_rows(n, wide * (d + to)), [&](int64_t begin, int64_t end) {
    const FlushSubnormals flush;
    const int64_t rows = end - begin;
    const Workspace<T> memory(rows * (chunk + kPanel<T>));
    T *const dg = memory.data(), *const edge = dg + rows * chunk;
    for (int64_t p = 0; p < wide; p += chunk) {
      const int64_t count = std::min(chunk, wide - p);
      w2.multiply(rows, p, count, {dy + begin * to, to, 1}, dg, chunk, {}, edge);
      T *const h_block = h + begin * wide + p, *const g_block = g + begin * wide + p;
      for (int64_t r = 0; r < rows; ++r) {
        if (kept16) convert(count, kept16 + (begin + r) * wide + p, h_block + r * wide);
        for_lanes<T>(count, [&](int64_t i, auto lanes) {
          T *const to_h = h_block + r * wide + i, *const to_g = g_block + r * wide + i;
          const Vec<T> v = lanes.load(to_h);
          const auto [value, slope] = gelu_both<Form, T>(v);
          keep(to_g, value, lanes, nontemporal);
          lanes.store(to_h, lanes.choose(lanes.load(dg + r * chunk + i) * slope, v));
        });
      }
      if (!dx) continue;
      T* c = dx + begin * d;
      pass_over(w1.block(p, 0), rows, d, Strided<T>{h_block, wide, 1}, c, d, p == 0 ? From<T>{} : From<T>{c, d}, edge);
    }
    fence_nontemporal(nontemporal);
  });
}

}  // namespace

template <Isa I>
void mlp_forward(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form) {
  if constexpr (kTarget == Isa::avx512)
    if (x.dtype() == DType::bf16) return mlp_forward_bf16(y, h, x, w, tanh_form);
  visit_forms(tanh_form, [&]<class Form>() {
    x.dtype() == DType::f64 ? forward<Form, double>(y, h, x, w) : forward<Form, float>(y, h, x, w);
  });
}
template <Isa I>
void mlp_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const MlpWeights& w, bool tanh_form) {
  if constexpr (kTarget == Isa::avx512)
    if (dy.dtype() == DType::bf16) return mlp_backward_bf16(dx, dh, activated, h, dy, w, tanh_form);
  visit_forms(tanh_form, [&]<class Form>() {
    dy.dtype() == DType::f64 ? backward<Form, double>(dx, dh, activated, h, dy, w)
                             : backward<Form, float>(dx, dh, activated, h, dy, w);
  });
}

template void mlp_forward<kTarget>(const Tensor&, const Tensor&, const Tensor&, const MlpWeights&, bool);
template void mlp_backward<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                    const MlpWeights&, bool);

}  // namespace isonorm::kernels::cpu
