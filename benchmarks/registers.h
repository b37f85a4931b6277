// The machine's peak arithmetic: f32 multiply-adds that stay in registers.
#pragma once

namespace isonorm::bench {

// Performs `flops` operations (a multiply-add counts as two) in independent chains in the widest registers that the
// kernels use (core/kernels/kernel.h, isa()), divided among the threads. Nothing is loaded or stored, so no program can
// be faster.
void multiply_add(double flops);

}  // namespace isonorm::bench
