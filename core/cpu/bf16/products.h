// Products of bf16 tensors by AVX512_BF16 or AMX with f32 sums. This folder is compiled once, with the flags of those
// instruction sets. The caller sees to it that the machine has them: isa() is at least Isa::avx512_bf16.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

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

}  // namespace kernels::cpu
}  // namespace isonorm
