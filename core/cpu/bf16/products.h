// Kernels of bf16 tensors with products by AVX512_BF16 and f32 sums: compiled once, with the flags of that instruction
// set. The caller sees to it that the machine has it: isa() is Isa::avx512_bf16.
#pragma once

#include "core/kernels/attention.h"
#include "core/kernels/mlp.h"

namespace isonorm::kernels::cpu {

// As the slots matmul and weight_gradient, for a, b, dy and x of bf16.
void matmul_bf16(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from);
void weight_gradient_bf16(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add);
// As the slots mlp_forward and mlp_backward, all of bf16.
void mlp_forward_bf16(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form);
void mlp_backward_bf16(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                       const MlpWeights& w, bool tanh_form);
// As the slots attention_forward and attention_backward, all of bf16 but for the sums.
void attention_forward_bf16(AttentionSpec spec, const Tensor& out, const AttentionSums& sums,
                            const AttentionInputs& in);
void attention_backward_bf16(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in);

}  // namespace isonorm::kernels::cpu
