// Conversion of safetensors dtypes that Tensor lacks to a dtype that holds all of their values; F16 is in half.h.
// Source: Micikevicius et al., FP8 Formats for Deep Learning (2209.05433), table 1; E8M0: OCP Microscaling Formats 1.0,
// section 5.4.1.
#pragma once

#include <string>

#include "core/tensor.h"

namespace isonorm::io {

// Converts elements that are held as bytes (TensorEntry::foreign) to numbers. `type` is the dtype of the elements.
// bytes u8 [..], or u8 [.., bytes of an element] -> [..]:
//   BOOL, I8, I16, U16, I32, U32   i64; BOOL keeps the stored value, 0 or 1
//   F8_E4M3, F8_E5M2, F8_E8M0      f32
//   others (U64, C64)              the bytes unchanged, u8
// All values are kept exactly.
Tensor numbers_of(const Tensor& bytes, const std::string& type);

// The same conversion for a tensor without data (lazy_state.h): gives the shape and dtype only.
Tensor outline_of_numbers(const Tensor& bytes, const std::string& type);

}  // namespace isonorm::io
