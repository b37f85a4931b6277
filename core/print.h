// Text of tensors and of what describes them, for people.
#pragma once

#include <iosfwd>
#include <string>

#include "core/tensor.h"

namespace isonorm {

// The values as NumPy's array2string() writes them with a comma as separator, then dtype, shape and device. Numbers have
// the digits that tell them from their neighbours, up to eight behind the point. They have an exponent where the largest
// is at least 1e8 (1e6 in f32 and bf16) or over 1000 times the smallest, or that is below 1e-4; zeros do not count. Of
// more than 1000 elements the first and the last three of each dimension are shown.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& os, const Tensor& x);

// "[2, 3]", "f32", "cuda:0".
std::ostream& operator<<(std::ostream& os, const Dims& shape);
std::ostream& operator<<(std::ostream& os, DType dtype);
std::ostream& operator<<(std::ostream& os, Device device);

}  // namespace isonorm
