// Internal: F16 (binary16), which no tensor has: its numbers are held in f32, which has all of them.
// Source: IEEE 754-2019, 3.4 and 4.3.1.
#pragma once

#include <string_view>

#include "io/safetensors.h"

namespace isonorm::io {

inline constexpr std::string_view kHalf = "F16";  // as TensorEntry::foreign has it

// Elements that are held as bytes, u8 [.., 2] (TensorEntry), in f32 [..].
Tensor from_half(const Tensor& bytes);

}  // namespace isonorm::io
