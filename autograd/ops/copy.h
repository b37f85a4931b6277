// Copies, and tensors on another device.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// x on `device`: x itself if it is there, else a contiguous copy of x's dtype. The gradient comes back to x's device.
// Any dtype. Throws if the program has no such device.
Tensor to(const Tensor& x, Device device);

// A contiguous copy of x with storage of its own; differentiable. Any dtype and device.
Tensor clone(const Tensor& x);

}  // namespace isonorm
