// NumPy's .npy files: one array.
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html (versions 1.0 and 2.0).
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor.h"
#include "core/tensor_map.h"

namespace isonorm {

// Reads an array, version 1 or 2 of the format, onto the CPU: little-endian f4, f8, i8 or u1, in C or Fortran order.
// Throws (invalid), naming the file, on another version or dtype, a damaged header, more than 8 dimensions, and if the
// header says another length of the data.
Tensor load_npy(const std::string& path);
Tensor load_npy(const Bytes& file);

// Replaces the file atomically with a tensor of any layout and device. Throws if the dtype is bf16, which NumPy lacks,
// or (io) if the system refuses; then the old file stays.
void save_npy(const std::string& path, const Tensor& tensor);

// NumPy's .npz files: named arrays, a zip archive (zip.h) of .npy files.

// The arrays of an archive in the order of its directory, on the CPU. A name is the member's without ".npy". Members
// are stored or deflated (numpy.savez, numpy.savez_compressed). Throws (invalid), naming the file, if it is not a zip
// archive (zip.h), if a member is not an .npy file (npy.h), and if a name occurs twice.
TensorMap load_npz(const std::string& path);
TensorMap load_npz(const Bytes& file);

// True if the file begins like a zip archive.
bool is_zip(const Bytes& file);

}  // namespace isonorm
