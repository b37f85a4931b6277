// gru_step, gru_step_backward, lstm_step, lstm_step_backward: gates and state of a recurrent layer's step, by the
// formulas of core/formulas/recurrent.h in the accumulation type. Tensors are [batch, a multiple of hidden], f32, f64
// or bf16; the rows of a and u may have gaps between them.
//
// A thread for each entry of the state, in blocks of 256, so that a warp reads neighbouring entries of a gate. No packs
// of 16 bytes: a step has a few thousand entries and waits for its launch, not for memory. Reads every operand once and
// writes every result once.
#include "core/kernels/recurrent.h"

#include "core/formulas/recurrent.h"
#include "gpu/launch.h"
#include "gpu/slots.h"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

constexpr int kThreads = 256;

// The place of a thread's entry in a [batch, n] state.
struct Entry {
  int64_t row, j, at;
  bool inside;

  // The entry's offset in rows of gates, for the first gate; `width` from row to row.
  __device__ __forceinline__ int64_t in_rows_of(int64_t width) const { return row * width + j; }
  __device__ __forceinline__ Entry(int64_t batch, int64_t n) : at(element()) {
    inside = at < batch * n;
    row = at / n;
    j = at % n;
  }
};

template <class T> struct GateRows {
  const T *a, *u;
  int64_t apart, beside;  // row strides of a and u
  GateRows(const Tensor& a, const Tensor& u)
      : a(a.data<T>()), u(u.data<T>()), apart(a.strides().v[0]), beside(u.strides().v[0]) {}
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    gru_entries(T* y, acc_t<T>* kept, GateRows<T> in, const T* h, int64_t batch, int64_t n) {
  using A = acc_t<T>;
  const Entry e(batch, n);
  if (!e.inside) return;
  const T *a = in.a + e.in_rows_of(in.apart), *u = in.u + e.in_rows_of(in.beside);
  const A r = math::sigmoid(A(a[0]) + A(u[0])), z = math::sigmoid(A(a[n]) + A(u[n]));
  const A fresh = formulas::gru_fresh(A(a[2 * n]), r, A(u[2 * n]));
  y[e.at] = T(formulas::gru_state(z, fresh, A(h[e.at])));
  if (!kept) return;
  kept += e.in_rows_of(4 * n);
  kept[0] = r;
  kept[n] = z;
  kept[2 * n] = fresh;
  kept[3 * n] = A(u[2 * n]);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gru_backward_entries(T* da, T* du, T* dh, const T* dy, const acc_t<T>* kept, const T* h, int64_t batch, int64_t n) {
  const Entry e(batch, n);
  if (!e.inside) return;
  const int64_t gates = e.in_rows_of(3 * n);
  formulas::gru_gradients(da + gates, du + gates, dh + e.at, dy + e.at, kept + e.in_rows_of(4 * n), h + e.at, n);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    lstm_entries(T* y, T* cell, acc_t<T>* kept, GateRows<T> in, const T* c, int64_t batch, int64_t n, bool gate) {
  using A = acc_t<T>;
  const Entry e(batch, n);
  if (!e.inside) return;
  const T *a = in.a + e.in_rows_of(in.apart), *u = in.u + e.in_rows_of(in.beside);
  const A i = math::sigmoid(A(a[0]) + A(u[0])), f = math::sigmoid(A(a[n]) + A(u[n]));
  const A g = math::tanh(A(a[2 * n]) + A(u[2 * n])), o = math::sigmoid(A(a[3 * n]) + A(u[3 * n]));
  const A next = formulas::lstm_cell(i, f, g, A(c[e.at]));
  cell[e.at] = T(next);
  const A shown = gate ? A(1) : math::tanh(next);
  y[e.at] = T(o * shown);
  if (!kept) return;
  kept += e.in_rows_of((gate ? 4 : 5) * n);
  kept[0] = i;
  kept[n] = f;
  kept[2 * n] = g;
  kept[3 * n] = o;
  if (!gate) kept[4 * n] = shown;
}

template <bool kGate, class T>
__global__ void __launch_bounds__(kThreads)
    lstm_backward_entries(T* dgates, T* dc, const T* dy, const T* dcell, const acc_t<T>* kept, const T* c,
                          int64_t batch, int64_t n) {
  const Entry e(batch, n);
  if (!e.inside) return;
  formulas::lstm_gradients<kGate>(dgates + e.in_rows_of(4 * n), dc + e.at, dy + e.at, dcell + e.at,
                                  kept + e.in_rows_of((kGate ? 4 : 5) * n), c + e.at, n);
}

}  // namespace

void gru_step(const kernels::GruOutputs& out, const kernels::GruInputs& in) {
  if (in.h.numel() == 0) return;
  visit_floating(in.h.dtype(), "gru_step", [&]<class T>() {
    launch("gru_step", &gru_entries<T>, one_each(in.h.numel(), kThreads), stream_of(in.h), write<T>(out.y),
           write_or_null<acc_t<T>>(out.kept), GateRows<T>(in.a, in.u), in.h.data<T>(), in.h.size(0), in.h.size(1));
  });
}

void gru_step_backward(const kernels::GruGradients& out, const Tensor& dy, const Tensor& kept, const Tensor& h) {
  if (h.numel() == 0) return;
  visit_floating(h.dtype(), "gru_step_backward", [&]<class T>() {
    launch("gru_step_backward", &gru_backward_entries<T>, one_each(h.numel(), kThreads), stream_of(h), write<T>(out.da),
           write<T>(out.du), write<T>(out.dh), dy.data<T>(), kept.data<acc_t<T>>(), h.data<T>(), h.size(0), h.size(1));
  });
}

void lstm_step(const kernels::LstmOutputs& out, const kernels::LstmInputs& in, bool gate) {
  if (in.c.numel() == 0) return;
  visit_floating(in.c.dtype(), "lstm_step", [&]<class T>() {
    launch("lstm_step", &lstm_entries<T>, one_each(in.c.numel(), kThreads), stream_of(in.c), write<T>(out.y),
           write<T>(out.cell), write_or_null<acc_t<T>>(out.kept), GateRows<T>(in.a, in.u), in.c.data<T>(), in.c.size(0),
           in.c.size(1), gate);
  });
}

void lstm_step_backward(const kernels::LstmGradients& out, const kernels::LstmSaved& in, bool gate) {
  if (in.c.numel() == 0) return;
  visit_floating(in.c.dtype(), "lstm_step_backward", [&]<class T>() {
    launch("lstm_step_backward", gate ? &lstm_backward_entries<true, T> : &lstm_backward_entries<false, T>,
           one_each(in.c.numel(), kThreads), stream_of(in.c), write<T>(out.dgates), write<T>(out.dc), in.dy.data<T>(),
           in.dcell.data<T>(), in.kept.data<acc_t<T>>(), in.c.data<T>(), in.c.size(0), in.c.size(1));
  });
}

}  // namespace isonorm::gpu
