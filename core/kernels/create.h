// Slots that write evenly spaced values and triangle masks. With fill (core/kernels/copy.h) they create every tensor of
// given values.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
void ramp(const Tensor& out, double begin, double step);
}

// out[i] = begin + i step, computed in f64 and converted once. out: rank 1, any stride and dtype.
inline constinit Kernel<void(const Tensor&, double, double)> ramp{"ramp", &cpu::ramp};

namespace cpu {
void triangle(const Tensor& out, const Tensor& x, int64_t diagonal, bool lower);
}

// out[..., i, j] = x[..., i, j] if j - i <= diagonal (lower) or j - i >= diagonal (upper), else 0. Contiguous, any
// dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&, int64_t, bool)> triangle{"triangle", &cpu::triangle};

}  // namespace isonorm::kernels
