// Slot that writes evenly spaced values. With fill (core/kernels/copy.h) it creates every tensor of given values.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
void ramp(const Tensor& out, double begin, double step);
}

// out[i] = begin + i step, computed in f64 and converted once. out: rank 1, any stride and dtype.
inline constinit Kernel<void(const Tensor&, double, double)> ramp{"ramp", &cpu::ramp};

}  // namespace isonorm::kernels
