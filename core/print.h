// Text of tensors and of what describes them, for people.
#pragma once

#include <iosfwd>
#include <string>

#include "core/tensor.h"

namespace isonorm {

// The values in nested brackets (the middle of long dimensions elided), then shape, dtype and device. Any dtype and
// device.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& os, const Tensor& x);

// "[2, 3]", "f32", "cuda:0".
std::ostream& operator<<(std::ostream& os, const Dims& shape);
std::ostream& operator<<(std::ostream& os, DType dtype);
std::ostream& operator<<(std::ostream& os, Device device);

}  // namespace isonorm
