// Kernels of bf16 tensors with products by AVX512_BF16 or AMX and f32 sums: compiled once, with the flags of those
// instruction sets. The caller sees to it that the machine has them: isa() is at least Isa::avx512_bf16.
#pragma once

#include "core/kernels/attention.h"
#include "core/kernels/mlp.h"

namespace isonorm {

// What multiplies: `vdpbf16ps`, tiles of AMX, or the plain twin of those, for the tests.
enum class Multiplier { registers, tiles, plain_tiles };
inline Multiplier multiplier() { return isa() == Isa::amx_bf16 ? Multiplier::tiles : Multiplier::registers; }

namespace kernels::cpu {

// As the slots matmul, weight_gradient and keep_packed, for a, b, dy, x and w of bf16; matmul reads what keep_packed left
// with b.
void matmul_bf16(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from, Multiplier by = multiplier());
void weight_gradient_bf16(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add,
                          Multiplier by = multiplier());
void keep_packed_bf16(const Tensor& w);
// As the slots mlp_forward and mlp_backward, all of bf16.
void mlp_forward_bf16(const Tensor& y, const Tensor& h, const Tensor& x, const MlpWeights& w, bool tanh_form);
void mlp_backward_bf16(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                       const MlpWeights& w, bool tanh_form);
// As the slots attention_forward and attention_backward, all of bf16 but for the sums.
void attention_forward_bf16(AttentionSpec spec, const Tensor& out, const AttentionSums& sums,
                            const AttentionInputs& in);
void attention_backward_bf16(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in);

}  // namespace kernels::cpu
}  // namespace isonorm
