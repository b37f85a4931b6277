// Internal: F16 (binary16), which no tensor has: its numbers are held in f32, which has all of them.
// Source: IEEE 754-2019, 3.4 and 4.3.1.
#pragma once

#include <string_view>

#include "io/safetensors.h"

namespace isonorm::io {

inline constexpr std::string_view kHalf = "F16";  // as TensorEntry::foreign has it

// The entry of a floating tensor, as one of F16.
inline void as_half(TensorEntry& e) { e.foreign = kHalf, e.dtype = DType::u8, e.shape.push_back(2); }

// Elements that are held as bytes, u8 [.., 2] (TensorEntry), in f32 [..].
Tensor from_half(const Tensor& bytes);
// The other way: elements of f32 or f64 [..], rounded once to nearest, ties to even, as u8 [.., 2]; beyond 65504 infinity.
Tensor to_half(const Tensor& x);

}  // namespace isonorm::io
