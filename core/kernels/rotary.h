// Slot of rotary position embedding: pairs of elements turned by an angle that depends on their place.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// Contiguous x seen as [outer, time, heads, size]; the first `turned` heads are rotated, the others copied.
struct RotaryShape {
  int64_t outer, time, heads, size, turned;
  bool back;    // by the negative angle: the transposed map
  bool halves;  // element i makes a pair with size/2 + i, else 2i with 2i + 1
};

namespace cpu {
template <Isa I>
void rotary(RotaryShape shape, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine);
}

// y[2i] = x[2i] c - x[2i+1] s, y[2i+1] = x[2i] s + x[2i+1] c, or the same of i and size/2 + i. cosine, sine [time, size/2] of the dtype that x is
// computed in.
inline constinit Kernel<void(RotaryShape, const Tensor&, const Tensor&, const Tensor&, const Tensor&)> rotary{
    "rotary", []<Isa I>() { return &cpu::rotary<I>; }};

}  // namespace isonorm::kernels
