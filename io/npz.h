// NumPy's .npz files: named arrays, a zip archive (zip.h) of .npy files.
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor_map.h"

namespace isonorm {

// The arrays of an archive in the order of its directory, on the CPU, named as its members without ".npy"; members are
// stored or deflated (numpy.savez, numpy.savez_compressed). Throws (invalid), naming the file, where it is no such archive
// (zip.h), on members that are no .npy (npy.h), and on names that occur twice.
TensorMap load_npz(const std::string& path);
TensorMap load_npz(const Bytes& file);

// Whether a file begins as a zip archive does.
bool is_zip(const Bytes& file);

}  // namespace isonorm
