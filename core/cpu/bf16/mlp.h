// The fused feed-forward layer in bf16, for machines with products of bf16 (products.h).
#pragma once

#include "core/kernels/mlp.h"

namespace isonorm::kernels::cpu {

// Like the slots mlp_forward and mlp_backward. All tensors are bf16.
void mlp_forward_bf16(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form);
void mlp_backward_bf16(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                       const MlpWeights& w, bool tanh_form);

}  // namespace isonorm::kernels::cpu
