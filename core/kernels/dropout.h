// Slot of dropout.
#pragma once

#include "core/kernels/kernel.h"
#include "core/random.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void dropout(const Tensor& out, const Tensor& x, double p, Generator state);
}  // namespace cpu

// out = x / (1 - p) if the element's 32 random bits (part j of 4 of its block) are >= p 2^32, else 0. Contiguous, of
// one floating dtype. `state`: the result of Generator::take for philox_blocks(n, 4) blocks.
inline constinit Kernel<void(const Tensor&, const Tensor&, double, Generator)> dropout{
    "dropout", []<Isa I>() { return &cpu::dropout<I>; }};

}  // namespace isonorm::kernels
