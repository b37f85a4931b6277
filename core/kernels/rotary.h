// Slot of rotary position embeddings: rotates pairs of elements by an angle that depends on their position.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// Contiguous x viewed as [outer, time, heads, size]. The first `turned` heads are rotated, the others copied.
struct RotaryShape {
  int64_t outer, time, heads, size, turned;
  bool back;    // rotates by the negative angle: the transposed map
  bool halves;  // pairs are (i, size/2 + i), else (2i, 2i + 1)
};

namespace cpu {
template <Isa I>
void rotary(RotaryShape shape, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine);
}

// y[2i] = x[2i] c - x[2i+1] s, y[2i+1] = x[2i] s + x[2i+1] c, or the same for i and size/2 + i. cosine, sine [time,
// size/2] have the dtype that x is computed in.
inline constinit Kernel<void(RotaryShape, const Tensor&, const Tensor&, const Tensor&, const Tensor&)> rotary{
    "rotary", []<Isa I>() { return &cpu::rotary<I>; }};

}  // namespace isonorm::kernels
