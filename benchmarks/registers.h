// The machine's arithmetic: multiply-adds of f32 that stay in registers.
#pragma once

namespace isonorm::bench {

// Does `flops` operations, a multiply-add being two, in independent chains in the widest registers that the kernels use
// (core/kernels/kernel.h, isa()), shared out among the threads. Nothing is loaded or stored: no program does them
// faster.
void multiply_add(double flops);

}  // namespace isonorm::bench
