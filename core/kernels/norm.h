// Slots of normalization by rows. Tensors are contiguous [rows, width], of one floating dtype; or, if native_bf16(), of
// f32 and bf16 in any mixture, computed in f32 and rounded once per result. A bf16 `sum` with f32 tensors is allowed on
// every device. Undefined tensors are absent.
#pragma once

#include "core/formulas/norm_spec.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct NormOutputs {
  Tensor y;      // the normalized rows
  Tensor sum;    // x + branch; undefined if there is no branch. y and stats are computed from the sum as stored
  Tensor stats;  // [rows, 2] of acc dtype: (mean or, for crms, sum of the row; 1/root)

  static auto tensors(auto& s) { return std::tie(s.y, s.sum, s.stats); }
};
struct NormInputs {
  Tensor x, branch, gain, bias;

  static auto tensors(auto& s) { return std::tie(s.x, s.branch, s.gain, s.bias); }
};

struct NormGradients {
  Tensor dx;
  Tensor dgain, dbias;  // [width]; undefined if not wanted
  Tensor dbranch = {};  // dx again in another dtype; undefined if not wanted

  static auto tensors(auto& s) { return std::tie(s.dx, s.dgain, s.dbias, s.dbranch); }
};
struct NormSaved {
  Tensor dy;    // gradient of the normalized rows
  Tensor dsum;  // added to dx, if defined
  Tensor x;     // the normalized tensor; if `normalized`, the result without gain and bias
  bool normalized;
  Tensor stats, gain;

  static auto tensors(auto& s) { return std::tie(s.dy, s.dsum, s.x, s.stats, s.gain); }
};

namespace cpu {
template <Isa I> void norm_forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
template <Isa I> void norm_backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace cpu

inline constinit Kernel<void(const NormSpec&, const NormOutputs&, const NormInputs&)> norm_forward{
    "norm_forward", []<Isa I>() { return &cpu::norm_forward<I>; }};
inline constinit Kernel<void(const NormSpec&, const NormGradients&, const NormSaved&)> norm_backward{
    "norm_backward", []<Isa I>() { return &cpu::norm_backward<I>; }};

}  // namespace isonorm::kernels
