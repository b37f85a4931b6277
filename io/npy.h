// NumPy's .npy files: one array.
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html (versions 1.0 and 2.0).
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor.h"

namespace isonorm {

// The array in a file of version 1 or 2, on the CPU: little-endian f4, f8, i8 or u1, in C or Fortran order. Throws
// (invalid), naming the file, on another version or type, a damaged header, more than 8 dimensions, and where the data
// are not exactly as long as the header says.
Tensor load_npy(const std::string& path);
Tensor load_npy(const Bytes& file);

// Replaces the file, all at once, with a tensor of any layout and device. Throws where its dtype is bf16, which NumPy
// does not have, or (io) the system refuses; then the old file stays.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace isonorm
