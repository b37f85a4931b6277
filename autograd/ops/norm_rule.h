// Internal: code shared by the norms and the fused residual add + norm: shape checks, the forward call and its
// gradient.
#pragma once

#include "autograd/node.h"
#include "core/formulas/norm_spec.h"

namespace isonorm::detail {

struct NormResult {
  Tensor y, sum, stats;
};

// Throws in the name of `op` if the arguments do not fit.
void check_norm(const char* op, const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias,
                DType as);

// Normalizes x, or x + branch if branch is defined (both contiguous). The sum is then also a result, of x's dtype, and
// is normalized as it is stored. y has the dtype `as`. No graph. Mixtures of bf16 and f32 are computed in f32, and each
// result is rounded once.
NormResult norm_forward(const NormSpec& spec, const Tensor& x, const Tensor& branch, const Tensor& gain,
                        const Tensor& bias, DType as);

// The tensors that the gradient of norm_forward() needs. Without gain and bias it keeps the result, which its reader
// keeps anyway, so that the input need not stay alive.
struct NormTape {
  NormSpec spec;
  DType input, computed_in;
  bool normalized;
  Saved rows, stats, gain;

  NormTape(const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias, const NormResult& result);

  struct Gradients {
    Tensor dx, dgain = {}, dbias = {};
    Tensor dbranch = {};  // dx in the branch's dtype, if the kernel gives it directly
  };
  // The input rows (x + branch for add_norm), up to a constant per row that a layer norm removes. No graph.
  Tensor input_values() const;
  // The norm of x by ordinary ops; gain and bias may be undefined.
  Tensor compose(const Tensor& x, const Tensor& gain, const Tensor& bias) const;

  // dx = d/dx of <dy, y> + dsum (which may be undefined); gradients of gain and bias if wanted, in the dtype of the
  // computation. branch: dtype of the branch that was added to x.
  Gradients backward(const Tensor& dy, const Tensor& dsum, bool wants_gain, bool wants_bias, DType branch) const;
};

}  // namespace isonorm::detail
