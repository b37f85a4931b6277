// Products of bf16 matrices with f32 sums by AVX512_BF16, for the slots of core/kernels/matmul.h: compiled once, with the
// flags of that instruction set. The caller sees to it that the machine has it: isa() is Isa::avx512_bf16.
#pragma once

#include "core/tensor.h"

namespace isonorm::kernels::cpu {

// As the slots matmul, weight_gradient and keep_packed, for a, b, dy, x and w of bf16; matmul reads what keep_packed left with b.
void matmul_bf16(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from);
void weight_gradient_bf16(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add);
void keep_packed_bf16(const Tensor& w);

}  // namespace isonorm::kernels::cpu
