// Text of a tensor's values, for people.
#pragma once

#include <iosfwd>
#include <string>

#include "core/tensor.h"

namespace isonorm {

// The values in nested brackets (the middle of long dimensions elided), then shape, dtype and device. Any dtype and
// device.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& os, const Tensor& x);

}  // namespace isonorm
