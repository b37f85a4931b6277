// Internal: What the norms and the fused residual add + norm share: shape checks, the forward call and the gradient of
// it.
#pragma once

#include "autograd/node.h"
#include "core/formulas/norm_spec.h"

namespace isonorm::detail {

struct NormResult {
  Tensor y, sum, stats;
};

// Throws as `op` where the arguments do not fit.
void check_norm(const char* op, const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias,
                DType as);

// Normalizes x, or x + branch where branch is defined (contiguous), which is then also a result, of x's dtype, and is
// normalized as it is stored; y is of dtype `as`. No graph. Of bf16 and f32 together everything is computed in f32 and
// each result rounded once.
NormResult norm_forward(const NormSpec& spec, const Tensor& x, const Tensor& branch, const Tensor& gain,
                        const Tensor& bias, DType as);

// What a gradient of it needs. Without gain and bias the result serves: its reader keeps it anyway, and the input need
// not stay alive.
struct NormTape {
  NormSpec spec;
  DType input, computed_in;
  bool normalized;
  Saved rows, stats, gain;

  NormTape(const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias, const NormResult& result);

  struct Gradients {
    Tensor dx, dgain = {}, dbias = {};
    Tensor dbranch = {};  // dx in the dtype of what was added, where the kernel gives it at once
  };
  // The normalized rows (x + branch of add_norm) up to a constant that a layer norm removes. No graph.
  Tensor input_values() const;
  // The norm of x by ops; gain and bias may be undefined.
  Tensor compose(const Tensor& x, const Tensor& gain, const Tensor& bias) const;

  // dx = d/dx of <dy, y> + dsum (which may be undefined); gradients of gain and bias where wanted, of the dtype in which
  // they are computed. branch: the dtype of what was added to x.
  Gradients backward(const Tensor& dy, const Tensor& dsum, bool wants_gain, bool wants_bias, DType branch) const;
};

}  // namespace isonorm::detail
