// Copies, and tensors on another device.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// x's values on a device: x itself where it lies there, else a copy, contiguous, of x's dtype. The gradient comes back
// to x's device. Any dtype. Throws where the program has no such device.
Tensor to(const Tensor& x, Device device);

// A tensor of its own with x's values, contiguous; the gradient passes. Any dtype and device.
Tensor clone(const Tensor& x);

}  // namespace isonorm
