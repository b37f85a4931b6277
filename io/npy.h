// NumPy's .npy files: one array.
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html (versions 1.0 and 2.0).
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor.h"

namespace isonorm {

// Reads an array, version 1 or 2 of the format, onto the CPU: little-endian f4, f8, i8 or u1, in C or Fortran order.
// Throws (invalid), naming the file, on another version or dtype, a damaged header, more than 8 dimensions, and if the
// header says another length of the data.
Tensor load_npy(const std::string& path);
Tensor load_npy(const Bytes& file);

// Replaces the file atomically with a tensor of any layout and device. Throws if the dtype is bf16, which NumPy lacks,
// or (io) if the system refuses; then the old file stays.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace isonorm
