// The pointwise part of a recurrent layer's step: one pass over memory, with vector loops over some entries of an
// example.
#include "core/kernels/recurrent.h"

#include <algorithm>

#include "core/cpu/target.h"
#include "core/formulas/recurrent.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// f(row) for every example, in blocks of some 10 us.
template <class F> void for_examples(const Tensor& state, const F& f) {
  parallel_for(state.size(0), std::max<int64_t>(1, 4096 / std::max<int64_t>(1, state.size(1))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) f(row);
               });
}

constexpr int64_t kEntries = 256;  // entries of a gate: the data of four gates stays in the first-level cache
template <class A> using Entries = A[kEntries];

// out = f(a + u) for n entries of a gate. Each gate has its own loop: a single loop would need more values than there
// are registers.
template <class A, class T, class F> void gate_entries(Entries<A>& out, const T* a, const T* u, int64_t n, F f) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) out[k] = f(A(a[k]) + A(u[k]));
}
constexpr auto kSigmoid = [](auto x) { return math::sigmoid(x); };
constexpr auto kTanh = [](auto x) { return math::tanh(x); };

template <class A, class T> void put(T* to, const Entries<A>& from, int64_t n) {
  for (int64_t k = 0; k < n; ++k) to[k] = T(from[k]);
}

// m entries of an example. Pointers point to the first entry; in rows of gates, to the first entry of the first gate,
// and the next gate's is n further. kept: null if not wanted.
template <class T> void gru_entries(T* y, acc_t<T>* kept, const T* a, const T* u, const T* h, int64_t n, int64_t m) {
  using A = acc_t<T>;
  alignas(64) Entries<A> r, z, fresh;
  gate_entries(r, a, u, m, kSigmoid);
  gate_entries(z, a + n, u + n, m, kSigmoid);
  const T *a_n = a + 2 * n, *u_n = u + 2 * n;
#pragma omp simd
  for (int64_t k = 0; k < m; ++k) fresh[k] = formulas::gru_fresh(A(a_n[k]), r[k], A(u_n[k]));
#pragma omp simd
  for (int64_t k = 0; k < m; ++k) y[k] = T(formulas::gru_state(z[k], fresh[k], A(h[k])));
  if (!kept) return;
  put(kept, r, m);
  put(kept + n, z, m);
  put(kept + 2 * n, fresh, m);
  std::copy(u_n, u_n + m, kept + 3 * n);
}

// Like gru_entries(). If `gate`, y is o.
template <class T>
void lstm_entries(T* y, T* cell, acc_t<T>* kept, const T* a, const T* u, const T* c, int64_t n, int64_t m, bool gate) {
  using A = acc_t<T>;
  alignas(64) Entries<A> i, f, g, o;
  gate_entries(i, a, u, m, kSigmoid);
  gate_entries(f, a + n, u + n, m, kSigmoid);
  gate_entries(g, a + 2 * n, u + 2 * n, m, kTanh);
  gate_entries(o, a + 3 * n, u + 3 * n, m, kSigmoid);
  if (kept) {
    put(kept, i, m);
    put(kept + n, f, m);
    put(kept + 2 * n, g, m);
    put(kept + 3 * n, o, m);
  }
  Entries<A>& next = g;
#pragma omp simd
  for (int64_t k = 0; k < m; ++k) next[k] = formulas::lstm_cell(i[k], f[k], g[k], A(c[k]));
  put(cell, next, m);
  if (gate) return put(y, o, m);
  Entries<A>& shown = next;
#pragma omp simd
  for (int64_t k = 0; k < m; ++k) shown[k] = math::tanh(next[k]);
  if (kept) put(kept + 4 * n, shown, m);
#pragma omp simd
  for (int64_t k = 0; k < m; ++k) y[k] = T(o[k] * shown[k]);
}

// All n entries of an example.
template <class T>
void gru_backward_row(T* da, T* du, T* dh, const T* dy, const acc_t<T>* kept, const T* h, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) formulas::gru_gradients(da + j, du + j, dh + j, dy + j, kept + j, h + j, n);
}

template <bool kGate, class T>
void lstm_backward_row(T* dgates, T* dc, const T* dy, const T* dcell, const acc_t<T>* kept, const T* c, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j)
    formulas::lstm_gradients<kGate>(dgates + j, dc + j, dy + j, dcell + j, kept + j, c + j, n);
}

}  // namespace

template <Isa I> void gru_step(const GruOutputs& out, const GruInputs& in) {
  visit_floating(in.h.dtype(), "gru_step", [&]<class T>() {
    const int64_t n = in.h.size(1), apart = in.a.strides().v[0], beside = in.u.strides().v[0];
    T* y = out.y.mutable_data<T>();
    acc_t<T>* kept = out.kept.defined() ? out.kept.mutable_data<acc_t<T>>() : nullptr;
    const T *a = in.a.data<T>(), *u = in.u.data<T>(), *h = in.h.data<T>();
    for_examples(in.h, [=](int64_t b) {
      for (int64_t j = 0; j < n; j += kEntries)
        gru_entries(y + b * n + j, kept ? kept + b * 4 * n + j : nullptr, a + b * apart + j, u + b * beside + j,
                    h + b * n + j, n, std::min(kEntries, n - j));
    });
  });
}

template <Isa I>
void gru_step_backward(const GruGradients& out, const Tensor& dy, const Tensor& kept, const Tensor& h) {
  visit_floating(h.dtype(), "gru_step_backward", [&]<class T>() {
    const int64_t n = h.size(1);
    T *da = out.da.mutable_data<T>(), *du = out.du.mutable_data<T>(), *dh = out.dh.mutable_data<T>();
    const T *g = dy.data<T>(), *before = h.data<T>();
    const acc_t<T>* gates = kept.data<acc_t<T>>();
    for_examples(h, [=](int64_t b) {
      gru_backward_row(da + b * 3 * n, du + b * 3 * n, dh + b * n, g + b * n, gates + b * 4 * n, before + b * n, n);
    });
  });
}

template <Isa I> void lstm_step(const LstmOutputs& out, const LstmInputs& in, bool gate) {
  visit_floating(in.c.dtype(), "lstm_step", [&]<class T>() {
    const int64_t n = in.c.size(1), apart = in.a.strides().v[0], beside = in.u.strides().v[0];
    T *y = out.y.mutable_data<T>(), *cell = out.cell.mutable_data<T>();
    acc_t<T>* kept = out.kept.defined() ? out.kept.mutable_data<acc_t<T>>() : nullptr;
    const T *a = in.a.data<T>(), *u = in.u.data<T>(), *c = in.c.data<T>();
    const int64_t parts = gate ? 4 : 5;
    for_examples(in.c, [=](int64_t b) {
      for (int64_t j = 0; j < n; j += kEntries)
        lstm_entries(y + b * n + j, cell + b * n + j, kept ? kept + b * parts * n + j : nullptr, a + b * apart + j,
                     u + b * beside + j, c + b * n + j, n, std::min(kEntries, n - j), gate);
    });
  });
}

template <Isa I> void lstm_step_backward(const LstmGradients& out, const LstmSaved& in, bool gate) {
  visit_floating(in.c.dtype(), "lstm_step_backward", [&]<class T>() {
    const int64_t n = in.c.size(1);
    T *dgates = out.dgates.mutable_data<T>(), *dc = out.dc.mutable_data<T>();
    const T *dy = in.dy.data<T>(), *dcell = in.dcell.data<T>(), *c = in.c.data<T>();
    const acc_t<T>* kept = in.kept.data<acc_t<T>>();
    const int64_t parts = gate ? 4 : 5;
    const auto row = gate ? &lstm_backward_row<true, T> : &lstm_backward_row<false, T>;
    for_examples(in.c, [=](int64_t b) {
      row(dgates + b * 4 * n, dc + b * n, dy + b * n, dcell + b * n, kept + b * parts * n, c + b * n, n);
    });
  });
}

template void gru_step<kTarget>(const GruOutputs&, const GruInputs&);
template void gru_step_backward<kTarget>(const GruGradients&, const Tensor&, const Tensor&, const Tensor&);
template void lstm_step<kTarget>(const LstmOutputs&, const LstmInputs&, bool);
template void lstm_step_backward<kTarget>(const LstmGradients&, const LstmSaved&, bool);

}  // namespace isonorm::kernels::cpu
