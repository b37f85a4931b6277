// The last layer of a classifier fused with its loss, so that the logits are never stored as a whole.
#pragma once

#include "autograd/ops/loss.h"

namespace isonorm {

// cross_entropy(linear(x, weight, bias), target, options): x [..., width], weight [classes, width], bias [classes] or
// undefined, target [...] (i64). Rows are processed in chunks of a few million logits. If a gradient is wanted, the
// forward turns a chunk's logits into their gradient in place and multiplies at once, which makes three products in
// all; computing the logits again in the backward would make four. The op saves the gradients, which are as large as x,
// weight and bias.
//
// A backward with create_graph computes the composition from x, weight and bias, which the op does not keep alive: it
// throws if either is gone or was changed since.
//
// With Reduction::none or class weights the composition runs. The loss has weight's dtype, which is f32 if x is bf16
// and weight and bias are its masters, as in linear(). Throws like linear() and cross_entropy().
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});

namespace reference {
// The composition that defines it.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});
}  // namespace reference

}  // namespace isonorm
