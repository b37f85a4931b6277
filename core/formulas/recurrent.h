// The new state of a GRU (Cho et al., 1406.1078, with the reset gate where PyTorch has it) and of an LSTM (Hochreiter &
// Schmidhuber, 1997, with Gers' forget gate) after one step, for one entry, and its derivatives. Shared by the CPU and
// CUDA.
//
//   GRU    r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n);  h' = n + z (h - n)
//   LSTM   i, f, o = sigmoid(a + u), g = tanh(a_g + u_g);  c' = f c + i g;         h' = o tanh(c')
//
// a comes from the input, u from the state. Pointers to gradients point to the entry itself. In rows of gates they
// point to the entry of the first gate; the next gate's entry is `n`, the width of the state, further. Computed in
// acc_t<T>, each result rounded once. The values kept by the forward are acc_t<T>.
#pragma once

#include "core/dtype.h"
#include "core/formulas/hd.h"
#include "core/formulas/math.h"

namespace isonorm::formulas {

template <class A> ISO_HD A gru_fresh(A a_n, A r, A u_n) { return math::tanh(a_n + r * u_n); }
template <class A> ISO_HD A gru_state(A z, A fresh, A h) { return fresh + z * (h - fresh); }

// Gradients of a, u and h from dy, the gradient of h', and kept = r, z, n, u_n.
template <class T>
ISO_HD void gru_gradients(T* da, T* du, T* dh, const T* dy, const acc_t<T>* kept, const T* h, int64_t n) {
  using A = acc_t<T>;
  const A r = kept[0], z = kept[n], fresh = kept[2 * n], u_n = kept[3 * n], g = A(dy[0]);
  const A d_n = g * (1 - z) * (1 - fresh * fresh), d_r = d_n * u_n * r * (1 - r);
  const A d_z = g * (A(h[0]) - fresh) * z * (1 - z);
  da[0] = T(d_r);
  du[0] = T(d_r);
  da[n] = T(d_z);
  du[n] = T(d_z);
  da[2 * n] = T(d_n);
  du[2 * n] = T(d_n * r);
  dh[0] = T(g * z);
}

template <class A> ISO_HD A lstm_cell(A i, A f, A g, A c) { return f * c + i * g; }

// Gradients of the gates (the same for a and u) and of c. dy: gradient of h', or of o if kGate. dcell: gradient of c'.
// kept: i, f, g, o and, unless kGate, tanh(c').
template <bool kGate, class T>
ISO_HD void lstm_gradients(T* dgates, T* dc, const T* dy, const T* dcell, const acc_t<T>* kept, const T* c, int64_t n) {
  using A = acc_t<T>;
  const A i = kept[0], f = kept[n], g = kept[2 * n], o = kept[3 * n], t = kGate ? A(1) : kept[4 * n];
  const A d_c = kGate ? A(dcell[0]) : A(dcell[0]) + A(dy[0]) * o * (1 - t * t);
  dgates[0] = T(d_c * g * i * (1 - i));
  dgates[n] = T(d_c * A(c[0]) * f * (1 - f));
  dgates[2 * n] = T(d_c * i * (1 - g * g));
  dgates[3 * n] = T(A(dy[0]) * t * o * (1 - o));
  dc[0] = T(d_c * f);
}

}  // namespace isonorm::formulas
