// Named tensors in files of other programs.
#pragma once

#include <string>

#include "core/tensor.h"
#include "core/tensor_map.h"

namespace isonorm {

// The tensors of a safetensors file, of a state dict that torch.save wrote (since PyTorch 1.6), or of an .npz archive,
// on the CPU. The format is recognised by the content of the file, not by its name.
//
// A dtype that Tensor lacks becomes the smallest tensor dtype that holds every value: F16 and F8 become f32; BOOL, I8,
// I16, U16, I32 and U32 become i64. No value changes. Throws what load_safetensors() and load_npz() throw. Also throws
// on U64 and complex numbers, and if a pickle holds anything but a dict of tensors.
//
// In PyTorch: torch.save(model.state_dict(), "net.pt"). nn::from_torch() converts names and layouts to ours. The map
// is_torch() if the file is a pickle or its metadata say "format": "pt" (save_pretrained() writes that,
// safetensors.torch.save_file() does not).
TensorMap load_state(const std::string& path);

}  // namespace isonorm

namespace isonorm::io {

// Conversion of safetensors dtypes that Tensor lacks to a dtype that holds all of their values; F16 is in half.h.
// Source: Micikevicius et al., FP8 Formats for Deep Learning (2209.05433), table 1; E8M0: OCP Microscaling Formats 1.0,
// section 5.4.1.

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
