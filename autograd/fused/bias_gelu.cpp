#include "autograd/fused/bias_gelu.h"

#include "autograd/fusion.h"
#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/kernels/bias_gelu.h"

namespace isonorm {

Tensor reference::bias_gelu(const Tensor& x, const Tensor& bias, GeluForm form) {
  const Tensor shifted = add(x, bias);
  return form == GeluForm::tanh ? gelu_tanh(shifted) : gelu(shifted);
}

Tensor bias_gelu(const Tensor& x, const Tensor& bias, GeluForm form) {
  check(is_floating(x.dtype()), "bias_gelu: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 1 && bias.shape() == Dims{x.size(-1)}, "bias_gelu: bias ", bias.shape(), " does not fit input ",
        x.shape());
  check(x.dtype() == bias.dtype(), "bias_gelu: dtypes ", x.dtype(), " and ", bias.dtype(), " differ");
  if (use_reference()) return reference::bias_gelu(x, bias, form);
  const bool tanh_form = form == GeluForm::tanh;
  const Tensor input = contiguous(detach(x)), shift = contiguous(detach(bias));
  Tensor y = empty_like(input);
  kernels::bias_gelu.on(x.device(), y, input, shift, tanh_form);
  if (Node* n = track("bias_gelu", {&y}, {&x, &bias}))
    n->backward = [x = save(input), bias = save(shift), tanh_form](Flow& g) {
      const Tensor dy = contiguous(g.out()), in = x, b = bias;
      const int64_t rows = b.numel() ? in.numel() / b.numel() : 0;
      Tensor dx = empty_like(dy), dbias = empty_like(b);
      Tensor partial = empty({kernels::bias_gelu_blocks(rows), b.numel()}, {acc_dtype(dy.dtype()), dy.device()});
      kernels::bias_gelu_backward.on(dy.device(), dx, dbias, partial, dy, in, b, tanh_form);
      g.give(0, dx);
      g.give(1, dbias);
    };
  return y;
}

}  // namespace isonorm
