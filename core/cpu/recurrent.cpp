// What is pointwise in a step of a recurrent layer: one pass over memory, a vector loop for each example.
#include "core/kernels/recurrent.h"

#include <algorithm>

#include "core/cpu/target.h"
#include "core/formulas/recurrent.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// f(row) for every example; blocks of some 10 us.
template <class F> void for_examples(const Tensor& state, const F& f) {
  parallel_for(state.size(0), std::max<int64_t>(1, 4096 / std::max<int64_t>(1, state.size(1))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) f(row);
               });
}

// The loops over the n entries of an example. kKeep: the gates are wanted for the gradient.

template <bool kKeep, class T> void gru_row(T* y, T* kept, const T* a, const T* u, const T* h, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) formulas::gru_step<kKeep>(y + j, kKeep ? kept + j : kept, a + j, u + j, h + j, n);
}

template <class T> void gru_backward_row(T* da, T* du, T* dh, const T* dy, const T* kept, const T* h, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) formulas::gru_gradients(da + j, du + j, dh + j, dy + j, kept + j, h + j, n);
}

template <bool kKeep, bool kGate, class T>
void lstm_row(T* y, T* cell, T* kept, const T* a, const T* u, const T* c, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j)
    formulas::lstm_step<kKeep, kGate>(y + j, cell + j, kKeep ? kept + j : kept, a + j, u + j, c + j, n);
}

template <bool kGate, class T>
void lstm_backward_row(T* dgates, T* dc, const T* dy, const T* dcell, const T* kept, const T* c, const T* cell,
                       int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j)
    formulas::lstm_gradients<kGate>(dgates + j, dc + j, dy + j, dcell + j, kept + j, c + j, cell + j, n);
}

}  // namespace

template <Isa I> void gru_step(const GruOutputs& out, const GruInputs& in) {
  visit_floating(in.h.dtype(), "gru_step", [&]<class T>() {
    const int64_t n = in.h.size(1), apart = in.a.strides()[0], beside = in.u.strides()[0];
    T *y = out.y.mutable_data<T>(), *kept = out.kept.defined() ? out.kept.mutable_data<T>() : nullptr;
    const T *a = in.a.data<T>(), *u = in.u.data<T>(), *h = in.h.data<T>();
    for_examples(in.h, [=](int64_t b) {
      if (kept)
        gru_row<true>(y + b * n, kept + b * 4 * n, a + b * apart, u + b * beside, h + b * n, n);
      else
        gru_row<false>(y + b * n, kept, a + b * apart, u + b * beside, h + b * n, n);
    });
  });
}

template <Isa I>
void gru_step_backward(const GruGradients& out, const Tensor& dy, const Tensor& kept, const Tensor& h) {
  visit_floating(h.dtype(), "gru_step_backward", [&]<class T>() {
    const int64_t n = h.size(1);
    T *da = out.da.mutable_data<T>(), *du = out.du.mutable_data<T>(), *dh = out.dh.mutable_data<T>();
    const T *g = dy.data<T>(), *gates = kept.data<T>(), *before = h.data<T>();
    for_examples(h, [=](int64_t b) {
      gru_backward_row(da + b * 3 * n, du + b * 3 * n, dh + b * n, g + b * n, gates + b * 4 * n, before + b * n, n);
    });
  });
}

template <Isa I> void lstm_step(const LstmOutputs& out, const LstmInputs& in, bool gate) {
  visit_floating(in.c.dtype(), "lstm_step", [&]<class T>() {
    const int64_t n = in.c.size(1), apart = in.a.strides()[0], beside = in.u.strides()[0];
    T *y = out.y.mutable_data<T>(), *cell = out.cell.mutable_data<T>();
    T* kept = out.kept.defined() ? out.kept.mutable_data<T>() : nullptr;
    const T *a = in.a.data<T>(), *u = in.u.data<T>(), *c = in.c.data<T>();
    const auto row = kept   ? gate ? &lstm_row<true, true, T> : &lstm_row<true, false, T>
                       : gate ? &lstm_row<false, true, T>
                            : &lstm_row<false, false, T>;
    for_examples(in.c, [=](int64_t b) {
      row(y + b * n, cell + b * n, kept ? kept + b * 4 * n : nullptr, a + b * apart, u + b * beside, c + b * n, n);
    });
  });
}

template <Isa I> void lstm_step_backward(const LstmGradients& out, const LstmSaved& in, bool gate) {
  visit_floating(in.c.dtype(), "lstm_step_backward", [&]<class T>() {
    const int64_t n = in.c.size(1);
    T *dgates = out.dgates.mutable_data<T>(), *dc = out.dc.mutable_data<T>();
    const T *dy = in.dy.data<T>(), *dcell = in.dcell.data<T>(), *kept = in.kept.data<T>();
    const T *c = in.c.data<T>(), *cell = in.cell.data<T>();
    const auto row = gate ? &lstm_backward_row<true, T> : &lstm_backward_row<false, T>;
    for_examples(in.c, [=](int64_t b) {
      row(dgates + b * 4 * n, dc + b * n, dy + b * n, dcell + b * n, kept + b * 4 * n, c + b * n, cell + b * n, n);
    });
  });
}

template void gru_step<kTarget>(const GruOutputs&, const GruInputs&);
template void gru_step_backward<kTarget>(const GruGradients&, const Tensor&, const Tensor&, const Tensor&);
template void lstm_step<kTarget>(const LstmOutputs&, const LstmInputs&, bool);
template void lstm_step_backward<kTarget>(const LstmGradients&, const LstmSaved&, bool);

}  // namespace isonorm::kernels::cpu
