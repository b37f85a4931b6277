// Slot of the triangle masks.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
void triangle(const Tensor& out, const Tensor& x, int64_t diagonal, bool lower);
}

// out[..., i, j] = x[..., i, j] if j - i <= diagonal (lower) or j - i >= diagonal (upper), else 0. Contiguous, any
// dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&, int64_t, bool)> triangle{"triangle", &cpu::triangle};

}  // namespace isonorm::kernels
