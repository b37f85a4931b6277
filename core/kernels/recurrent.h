// Kernel slots (kernel.h) of the pointwise part of a recurrent layer's step: gates and the new state
// (core/formulas/recurrent.h). All tensors have one floating dtype, except `kept`, which has its acc dtype: rounding
// would destroy 1 - z for a gate z near 1. a and u are rows of adjacent entries, and the rows may be apart. All other
// tensors are contiguous.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct GruOutputs {
  Tensor y;     // [batch, hidden]
  Tensor kept;  // r, z, n and the last third of u, [batch, 4 hidden], for the gradient; undefined if not wanted

  static auto tensors(auto& s) { return std::tie(s.y, s.kept); }
};
struct GruInputs {
  Tensor a, u;  // [batch, 3 hidden]
  Tensor h;     // [batch, hidden]

  static auto tensors(auto& s) { return std::tie(s.a, s.u, s.h); }
};
struct GruGradients {
  Tensor da, du, dh;  // shaped like GruInputs, contiguous

  static auto tensors(auto& s) { return std::tie(s.da, s.du, s.dh); }
};

struct LstmOutputs {
  Tensor y, cell;  // [batch, hidden]
  // For the gradient, undefined if not wanted: i, f, g, o, [batch, 4 hidden]; if y is o tanh(cell), also this tanh,
  // [batch, 5 hidden].
  Tensor kept;

  static auto tensors(auto& s) { return std::tie(s.y, s.cell, s.kept); }
};
struct LstmInputs {
  Tensor a, u;  // [batch, 4 hidden]
  Tensor c;     // [batch, hidden]

  static auto tensors(auto& s) { return std::tie(s.a, s.u, s.c); }
};
struct LstmGradients {
  Tensor dgates;  // gradient of a, equal to u's, [batch, 4 hidden]
  Tensor dc;      // [batch, hidden]

  static auto tensors(auto& s) { return std::tie(s.dgates, s.dc); }
};
struct LstmSaved {
  Tensor dy, dcell;  // gradients of the outputs
  Tensor kept, c;    // the forward's tensors

  static auto tensors(auto& s) { return std::tie(s.dy, s.dcell, s.kept, s.c); }
};

namespace cpu {
template <Isa I> void gru_step(const GruOutputs& out, const GruInputs& in);
template <Isa I> void gru_step_backward(const GruGradients& out, const Tensor& dy, const Tensor& kept, const Tensor& h);
template <Isa I> void lstm_step(const LstmOutputs& out, const LstmInputs& in, bool gate);
template <Isa I> void lstm_step_backward(const LstmGradients& out, const LstmSaved& in, bool gate);
}  // namespace cpu

inline constinit Kernel<void(const GruOutputs&, const GruInputs&)> gru_step{"gru_step",
                                                                            []<Isa I>() { return &cpu::gru_step<I>; }};
inline constinit Kernel<void(const GruGradients&, const Tensor&, const Tensor&, const Tensor&)> gru_step_backward{
    "gru_step_backward", []<Isa I>() { return &cpu::gru_step_backward<I>; }};

// y is o if `gate`, else o tanh(cell).
inline constinit Kernel<void(const LstmOutputs&, const LstmInputs&, bool)> lstm_step{
    "lstm_step", []<Isa I>() { return &cpu::lstm_step<I>; }};
inline constinit Kernel<void(const LstmGradients&, const LstmSaved&, bool)> lstm_step_backward{
    "lstm_step_backward", []<Isa I>() { return &cpu::lstm_step_backward<I>; }};

}  // namespace isonorm::kernels
