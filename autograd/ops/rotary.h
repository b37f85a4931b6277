// Rotary position embedding.
#pragma once

#include "core/tensor.h"

namespace isonorm {

struct RotaryOptions {
  double base = 10000;  // wavelengths grow from 2 pi to 2 pi base
  int64_t heads = 0;    // number of leading heads to rotate, the others are unchanged; 0: all
  int64_t first = 0;    // position of the first row; above 0, the angles of all positions up to the last are cached
  bool halves = false;  // rotates pairs (i, size/2 + i), as in checkpoints of the LLaMA family, instead of (2i, 2i + 1)
};

// Rotates elements 2i, 2i + 1 (or i, size/2 + i) of a head at position t = first, first + 1, ... by the angle t
// base^(-2i/size), so that the product of two rotated heads depends only on the distance of their positions (Su et al.,
// RoFormer, 2104.09864, equation 34). x [..., time, heads, size] of a floating dtype (bf16 is computed in f32) -> the
// same shape. Throws if the rank is below 3, `size` is odd, `heads` is more than there are, base is not positive, or a
// position is outside of [0, 2^32).
Tensor rotary(const Tensor& x, RotaryOptions options = {});

}  // namespace isonorm
