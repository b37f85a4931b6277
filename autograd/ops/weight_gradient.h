// What the backward rules of linear maps share.
#pragma once

#include "core/tensor.h"

namespace isonorm::detail {

struct WeightGradient {
  Tensor weight, bias;  // [out, in], [out]; of the dtype that is computed in
};

// For y = x W^T + b and the gradient dy of y [..., out], x [..., in]: those of W, and of b where `bias` (undefined
// otherwise), in one pass over dy.
WeightGradient weight_gradient(const Tensor& x, const Tensor& dy, bool bias);

}  // namespace isonorm::detail
