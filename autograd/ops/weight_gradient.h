// What the backward rules of linear maps share.
#pragma once

#include "autograd/node.h"

namespace isonorm::detail {

// For y = x W^T + b and the gradient dy of y [..., out], x [..., in]: gives those of W and b, inputs `weight` and
// `weight + 1` of the node, as far as they are wanted, in one pass over dy. Where x and dy are bf16 and W is
// f32, its gradient is not rounded on its way.
void give_weight_gradient(Flow& g, int weight, const Tensor& x, const Tensor& dy);

}  // namespace isonorm::detail
