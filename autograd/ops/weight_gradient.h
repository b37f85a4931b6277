// The gradients of weight and bias for the backward rules of linear maps.
#pragma once

#include "autograd/node.h"

namespace isonorm::detail {

// For y = x W^T + b with x [..., in] and the gradient dy [..., out] of y: gives the gradients of W and b, inputs
// `weight` and `weight + 1` of the node, if they are wanted, in one pass over dy. If x and dy are bf16 and W is f32,
// W's gradient is not rounded on its way.
void give_weight_gradient(Flow& g, int weight, const Tensor& x, const Tensor& dy);

}  // namespace isonorm::detail
