// Slot of the matrix product, the only place where BLAS is called.
#pragma once

#include "core/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
void matmul(const Tensor& out, const Tensor& a, const Tensor& b, double beta);
}

// out = a b + beta out. a [..., m, k], b [..., k, n], out [..., m, n] of one dtype f32 or f64; the leading dimensions
// are equal (a stride of 0 where an operand broadcasts). In the last two dimensions of each one stride is 1 (a
// transposed view is fine) and the other at least the size of the contiguous one. beta is 0 or 1; with 0 the old
// contents of out are not read.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, double)> matmul{
    "matmul", &cpu::matmul,
    [](const Tensor& out, const Tensor& a, const Tensor&, double) { return 2 * out.numel() * a.size(-1); }};

}  // namespace isonorm::kernels
