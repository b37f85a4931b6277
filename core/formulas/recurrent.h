// One entry of the state of a GRU (Cho et al., 1406.1078, with PyTorch's place of the reset gate) and of an LSTM
// (Hochreiter & Schmidhuber, 1997, with Gers' forget gate) behind a step, and its derivatives: once for the CPU and for
// CUDA.
//
//   GRU    r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n);  h' = n + z (h - n)
//   LSTM   i, f, o = sigmoid(a + u), g = tanh(a_g + u_g);  c' = f c + i g;         h' = o tanh(c')
//
// a: what the input says, u: what the state says. Pointers are to the entry itself, in rows of gates to that of the
// first gate; the next gate's is `n` further, the width of the state. Computed in acc_t<T>, each result rounded once.
#pragma once

#include "core/dtype.h"
#include "core/formulas/hd.h"
#include "core/formulas/math.h"

namespace isonorm::formulas {

// y = h'. kKeep: kept = r, z, n, u_n.
template <bool kKeep, class T> ISO_HD void gru_step(T* y, T* kept, const T* a, const T* u, const T* h, int64_t n) {
  using A = acc_t<T>;
  const A r = math::sigmoid(A(a[0]) + A(u[0])), z = math::sigmoid(A(a[n]) + A(u[n])), u_n = A(u[2 * n]);
  const A fresh = math::tanh(A(a[2 * n]) + r * u_n);
  y[0] = T(fresh + z * (A(h[0]) - fresh));
  if constexpr (kKeep) {
    kept[0] = T(r);
    kept[n] = T(z);
    kept[2 * n] = T(fresh);
    kept[3 * n] = T(u_n);
  }
}

// From dy, the derivative by h': those by a, u and h.
template <class T> ISO_HD void gru_gradients(T* da, T* du, T* dh, const T* dy, const T* kept, const T* h, int64_t n) {
  using A = acc_t<T>;
  const A r = A(kept[0]), z = A(kept[n]), fresh = A(kept[2 * n]), u_n = A(kept[3 * n]), g = A(dy[0]);
  const A d_n = g * (1 - z) * (1 - fresh * fresh);
  da[0] = du[0] = T(d_n * u_n * r * (1 - r));
  da[n] = du[n] = T(g * (A(h[0]) - fresh) * z * (1 - z));
  da[2 * n] = T(d_n);
  du[2 * n] = T(d_n * r);
  dh[0] = T(g * z);
}

// cell = c', y = h', or o where kGate. kKeep: kept = i, f, g, o.
template <bool kKeep, bool kGate, class T>
ISO_HD void lstm_step(T* y, T* cell, T* kept, const T* a, const T* u, const T* c, int64_t n) {
  using A = acc_t<T>;
  const A i = math::sigmoid(A(a[0]) + A(u[0])), f = math::sigmoid(A(a[n]) + A(u[n]));
  const A g = math::tanh(A(a[2 * n]) + A(u[2 * n])), o = math::sigmoid(A(a[3 * n]) + A(u[3 * n]));
  const A next = f * A(c[0]) + i * g;
  cell[0] = T(next);
  y[0] = T(kGate ? o : o * math::tanh(next));
  if constexpr (kKeep) {
    kept[0] = T(i);
    kept[n] = T(f);
    kept[2 * n] = T(g);
    kept[3 * n] = T(o);
  }
}

// From dy and dcell, the derivatives by y and c': those by the gates (by a and u alike) and by c.
template <bool kGate, class T>
ISO_HD void lstm_gradients(T* dgates, T* dc, const T* dy, const T* dcell, const T* kept, const T* c, const T* cell,
                           int64_t n) {
  using A = acc_t<T>;
  const A i = A(kept[0]), f = A(kept[n]), g = A(kept[2 * n]), o = A(kept[3 * n]);
  const A t = kGate ? A(1) : math::tanh(A(cell[0]));
  const A d_c = kGate ? A(dcell[0]) : A(dcell[0]) + A(dy[0]) * o * (1 - t * t);
  dgates[0] = T(d_c * g * i * (1 - i));
  dgates[n] = T(d_c * A(c[0]) * f * (1 - f));
  dgates[2 * n] = T(d_c * i * (1 - g * g));
  dgates[3 * n] = T(A(dy[0]) * t * o * (1 - o));
  dc[0] = T(d_c * f);
}

}  // namespace isonorm::formulas
