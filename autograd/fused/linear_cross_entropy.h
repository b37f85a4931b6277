// The last layer of a classifier together with its loss, so that the logits never exist as a whole.
#pragma once

#include "autograd/ops/loss.h"

namespace isonorm {

// cross_entropy(linear(x, weight, bias), target, options): x [..., width], weight [classes, width], bias [classes] or
// undefined, target [...] (i64). Rows are taken in chunks of a few million logits; where a gradient is wanted, the
// forward pass turns a chunk's logits into their gradient in place and multiplies on at once, so that three products
// are done in all (computing the logits again would make it four) and what waits for the backward pass is as large as
// x, weight and bias. It keeps neither x nor weight nor bias: a backward with create_graph computes the composition from them,
// and throws if one of them is gone or was changed since. With Reduction::none, where every row has a factor of its own, it is the composition. Throws as
// linear() and cross_entropy() do. The loss has weight's dtype, which is f32 where x is bf16 and weight and bias are
// masters of it, as linear() takes them.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});

namespace reference {
// The composition that defines it.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options = {});
}  // namespace reference

}  // namespace isonorm
