// Tensors on another device.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// x's values on a device: x itself where it lies there, else a copy, contiguous, of x's dtype. The gradient comes back
// to x's device. Any dtype. Throws where the program has no such device.
Tensor to(const Tensor& x, Device device);

}  // namespace isonorm
