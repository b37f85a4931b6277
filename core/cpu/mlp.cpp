// The feed-forward layer of a block, a few rows at a time: intermediate results do not leave the cache. The hidden
// entries are processed in the depth blocks of the second product, so that every element has the same bits as with
// separate products and activation.
#include "core/kernels/mlp.h"

#include <optional>

#include "core/cpu/bf16/products.h"
#include "core/cpu/gelu_form.h"
#include "core/cpu/gemm.h"
#include "core/cpu/nontemporal.h"
#include "core/cpu/target.h"

namespace isonorm::kernels::cpu {
namespace {

// w [out, in] of type S as the right-hand matrix of dy w.
template <class T, class S> Packed<T> packed(const Tensor& w) {
  return {w.size(0), w.size(1), Strided<S>{w.data<S>(), w.size(1), 1}};
}

// n elements of type S as T: in place, or widened.
template <class T, class S> class Widened {
 public:
  Widened(const S* p, int64_t n) {
    if constexpr (std::is_same_v<T, S>)
      p_ = p;
    else if (p)
      convert(n, p, own_.emplace(n).data()), p_ = own_->data();
  }
  explicit Widened(const Tensor& bias)
      : Widened(bias.defined() ? bias.data<S>() : nullptr, bias.defined() ? bias.numel() : 0) {}
  const T* data() const { return p_; }
  From<T> bias(int64_t begin = 0) const { return {p_ ? p_ + begin : nullptr, 0}; }

 private:
  const T* p_ = nullptr;
  std::optional<Workspace<T>> own_;
};

// Memory for n results of type S: the results themselves, or T that are rounded to them at the end.
template <class T, class S> class Rounded {
 public:
  Rounded(S* p, int64_t n) : to_(p), n_(n) {
    if constexpr (!std::is_same_v<T, S>)
      if (p) own_.emplace(n);
  }
  T* data() const {
    if constexpr (std::is_same_v<T, S>)
      return to_;
    else
      return own_ ? own_->data() : nullptr;
  }
  void round() const {
    if constexpr (!std::is_same_v<T, S>)
      if (own_) convert(n_, own_->data(), to_);
  }

 private:
  S* to_;
  int64_t n_;
  std::optional<Workspace<T>> own_;
};

// The forward's h if it is kept as bf16, otherwise null.
const bf16* rounded(const Tensor& h) { return h.defined() && h.dtype() == DType::bf16 ? h.data<bf16>() : nullptr; }

// Stores a value that only a later kernel reads.
template <class S, class V, class Lanes> void keep(S* to, V v, const Lanes& lanes, bool nontemporal) {
  if constexpr (!std::is_same_v<S, bf16>)
    if (nontemporal) return store_nontemporal<S>(to, v);
  lanes.store(to, lanes.choose(v, lanes.load(to)));
}

template <class Form, class T, class S>
void forward(const Tensor& out, const Tensor& hidden, const Tensor& in, const MlpWeights& w) {
  const int64_t n = in.size(0), d = in.size(1), wide = w.w1.size(0), to = out.size(1);
  const Packed<T> w1 = Packed<T>::template transposed<S>(w.w1), w2 = Packed<T>::template transposed<S>(w.w2);
  const Widened<T, S> b1(w.b1), b2(w.b2);
  const int64_t chunk = std::min(wide, w2.depth());
  const S* x = in.data<S>();
  bf16* const kept16 = rounded(hidden) ? hidden.mutable_data<bf16>() : nullptr;
  S* y = out.mutable_data<S>();
  T* kept = hidden.defined() && !kept16 ? hidden.mutable_data<T>() : nullptr;
  const bool nontemporal = kept && passes_caches<T>(hidden, wide);
  parallel_for(passing_rows(n, wide * (d + to)), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    const int64_t rows = end - begin;
    const Workspace<T> memory(rows * (chunk + kPanel<T>));
    T *const g = memory.data(), *const edge = g + rows * chunk;
    const Widened<T, S> read(x + begin * d, rows * d);
    const Rounded<T, S> result(y + begin * to, rows * to);
    T* const c = result.data();
    for (int64_t p = 0; p < wide; p += chunk) {
      const int64_t count = std::min(chunk, wide - p);
      w1.multiply(rows, p, count, {read.data(), d, 1}, g, chunk, b1.bias(p), edge);
      for (int64_t r = 0; r < rows; ++r) {
        T* const h = g + r * chunk;
        const int64_t at = (begin + r) * wide + p;
        if (kept16) convert(count, h, kept16 + at);
        for_lanes<T>(count, [&](int64_t i, auto lanes) {
          const Vec<T> v = lanes.load(h + i), seen = round_lanes<S>(v);
          if (kept) keep(kept + at + i, v, lanes, nontemporal);
          const Vec<T> value = round_lanes<S>(map_lanes<T>(seen, [](T a) { return Form::value(a); }));
          lanes.store(h + i, lanes.choose(value, v));
        });
      }
      pass_over(w2.block(p, 0), rows, to, Strided<T>{g, chunk, 1}, c, to, p == 0 ? b2.bias() : From<T>{c, to}, edge);
    }
    result.round();
    fence_nontemporal(nontemporal);
  });
}

template <class Form, class T, class S>
void backward(const Tensor& dx_out, const Tensor& dh_out, const Tensor& activated, const Tensor& hidden,
              const Tensor& dy_in, const MlpWeights& w) {
  const int64_t n = dy_in.size(0), wide = w.w1.size(0), d = w.w1.size(1), to = dy_in.size(1);
  const Packed<T> w2 = packed<T, S>(w.w2), w1 = packed<T, S>(w.w1);
  const int64_t chunk = std::min(wide, w1.depth());
  const S* dy = dy_in.data<S>();
  const bf16* const kept16 = rounded(hidden);
  S *h = dh_out.mutable_data<S>(), *g = activated.mutable_data<S>();
  S* dx = dx_out.defined() ? dx_out.mutable_data<S>() : nullptr;
  const bool nontemporal = std::is_same_v<T, S> && passes_caches<T>(activated, wide);
  parallel_for(passing_rows(n, wide * (d + to)), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    const int64_t rows = end - begin;
    const Workspace<T> memory(rows * (chunk + kPanel<T>));
    T *const dg = memory.data(), *const edge = dg + rows * chunk;
    const Widened<T, S> read(dy + begin * to, rows * to);
    const Rounded<T, S> result(dx ? dx + begin * d : nullptr, rows * d);
    T* const c = result.data();
    for (int64_t p = 0; p < wide; p += chunk) {
      const int64_t count = std::min(chunk, wide - p);
      w2.multiply(rows, p, count, {read.data(), to, 1}, dg, chunk, {}, edge);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = (begin + r) * wide + p;
        if (kept16) convert(count, kept16 + at, h + at);
        for_lanes<T>(count, [&](int64_t i, auto lanes) {
          S *const to_h = h + at + i, *const to_g = g + at + i;
          T* const gradient = dg + r * chunk + i;
          const Vec<T> v = lanes.load(to_h), before = lanes.load(gradient);
          const ValueAndSlope<T> both = gelu_both<Form, T>(v);
          const Vec<T> dh = round_lanes<S>(before) * both.slope;
          keep(to_g, both.value, lanes, nontemporal);
          lanes.store(to_h, lanes.choose(dh, v));
          lanes.store(gradient, lanes.choose(round_lanes<S>(dh), before));
        });
      }
      if (!dx) continue;
      pass_over(w1.block(p, 0), rows, d, Strided<T>{dg, chunk, 1}, c, d, p == 0 ? From<T>{} : From<T>{c, d}, edge);
    }
    result.round();
    fence_nontemporal(nontemporal);
  });
}

template <class Form> void run_forward(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w) {
  visit_floating(x.dtype(), "mlp", [&]<class S>() { forward<Form, acc_t<S>, S>(y, h, x, w); });
}
template <class Form>
void run_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const MlpWeights& w) {
  visit_floating(dy.dtype(), "mlp", [&]<class S>() { backward<Form, acc_t<S>, S>(dx, dh, activated, h, dy, w); });
}

// True if core/cpu/bf16/products.h computes this layer.
bool by_pairs(const Tensor& x) { return x.dtype() == DType::bf16 && isa() >= Isa::avx512_bf16; }

}  // namespace

template <Isa I>
void mlp_forward(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form) {
  if constexpr (kTarget == Isa::avx512)
    if (by_pairs(x)) return mlp_forward_bf16(y, h, x, w, tanh_form);
  visit_forms(tanh_form, [&]<class Form>() { run_forward<Form>(y, h, x, w); });
}
template <Isa I>
void mlp_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const MlpWeights& w, bool tanh_form) {
  if constexpr (kTarget == Isa::avx512)
    if (by_pairs(dy)) return mlp_backward_bf16(dx, dh, activated, h, dy, w, tanh_form);
  visit_forms(tanh_form, [&]<class Form>() { run_backward<Form>(dx, dh, activated, h, dy, w); });
}

template void mlp_forward<kTarget>(const Tensor&, const Tensor&, const Tensor&, const MlpWeights&, bool);
template void mlp_backward<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                    const MlpWeights&, bool);

}  // namespace isonorm::kernels::cpu
