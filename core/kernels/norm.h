// Slots of the normalizations of rows: contiguous [rows, width] tensors of one floating dtype. Undefined tensors stand
// for what is absent.
#pragma once

#include "core/formulas/norm_spec.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct NormOutputs {
  Tensor y;      // the normalized rows
  Tensor sum;    // x + branch; undefined where there is no branch
  Tensor stats;  // [rows, 2] of acc dtype: (mean or, for crms, sum of the row; 1/root)

  friend int64_t tensor_bytes(const NormOutputs& n) { return bytes_of_all(n.y, n.sum, n.stats); }
};
struct NormInputs {
  Tensor x, branch, gain, bias;

  friend int64_t tensor_bytes(const NormInputs& n) { return bytes_of_all(n.x, n.branch, n.gain, n.bias); }
};

struct NormGradients {
  Tensor dx;
  Tensor dgain, dbias;  // [width]; undefined where not wanted

  friend int64_t tensor_bytes(const NormGradients& n) { return bytes_of_all(n.dx, n.dgain, n.dbias); }
};
struct NormSaved {
  Tensor dy;    // of the normalized rows
  Tensor dsum;  // added to dx; undefined: nothing
  Tensor x;     // what was normalized, or, where `normalized`, the result without gain and bias
  bool normalized;
  Tensor stats, gain;

  friend int64_t tensor_bytes(const NormSaved& n) { return bytes_of_all(n.dy, n.dsum, n.x, n.stats, n.gain); }
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
