// Products of bf16 tensors by AVX512_BF16 or AMX, with f32 sums, and the fused ops made of them. This folder is
// compiled once, with the flags of these instruction sets. The caller makes sure that the machine has them: isa() is at
// least Isa::avx512_bf16.
#pragma once

#include "core/kernels/attention.h"
#include "core/kernels/kernel.h"
#include "core/kernels/mlp.h"
#include "core/tensor.h"

namespace isonorm {

// The unit that multiplies: `vdpbf16ps`, AMX tiles, or plain code that computes like AMX tiles, for the tests.
enum class Multiplier { registers, tiles, plain_tiles };
inline Multiplier multiplier() { return isa() == Isa::amx_bf16 ? Multiplier::tiles : Multiplier::registers; }

namespace kernels::cpu {

// Like the slots matmul, weight_gradient and keep_packed, with a, b, dy, x and w of bf16. matmul_bf16() reads the copy
// that keep_packed_bf16() left with b.
void matmul_bf16(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from, Multiplier by = multiplier());
void weight_gradient_bf16(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add,
                          Multiplier by = multiplier());
void keep_packed_bf16(const Tensor& w);

// Like the slots attention_forward and attention_backward. All tensors are bf16, except the sums.
void attention_forward_bf16(AttentionSpec spec, const Tensor& out, const AttentionSums& sums,
                            const AttentionInputs& in);
void attention_backward_bf16(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in);

// Like the slots mlp_forward and mlp_backward. All tensors are bf16.
void mlp_forward_bf16(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form);
void mlp_backward_bf16(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                       const MlpWeights& w, bool tanh_form);

}  // namespace kernels::cpu
}  // namespace isonorm
