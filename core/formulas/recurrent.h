// One entry of the state of a GRU (Cho et al., 1406.1078, with PyTorch's place of the reset gate) and of an LSTM
// (Hochreiter & Schmidhuber, 1997, with Gers' forget gate) behind a step, and its derivatives: once for the CPU and for
// CUDA.
//
//   GRU    r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n);  h' = n + z (h - n)
//   LSTM   i, f, o = sigmoid(a + u), g = tanh(a_g + u_g);  c' = f c + i g;         h' = o tanh(c')
//
// a: what the input says, u: what the state says. Pointers of derivatives are to the entry itself, in rows of gates to
// that of the first gate; the next gate's is `n` further, the width of the state. Computed in acc_t<T>, each result
// rounded once; what the forward kept is of acc_t<T>.
#pragma once

#include "core/dtype.h"
#include "core/formulas/hd.h"
#include "core/formulas/math.h"

namespace isonorm::formulas {

template <class A> ISO_HD A gru_fresh(A a_n, A r, A u_n) { return math::tanh(a_n + r * u_n); }
template <class A> ISO_HD A gru_state(A z, A fresh, A h) { return fresh + z * (h - fresh); }

// From dy, the derivative by h', and kept = r, z, n, u_n: those by a, u and h.
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

// From dy and dcell, the derivatives by h' (by o where kGate) and c', and kept = i, f, g, o and, but where
// kGate, tanh(c'): those by the gates (by a and u alike) and by c.
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
