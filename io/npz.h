// NumPy's .npz files: named arrays, a zip archive (zip.h) of .npy files.
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor_map.h"

namespace isonorm {

// The arrays of an archive in the order of its directory, on the CPU. A name is the member's without ".npy". Members
// are stored or deflated (numpy.savez, numpy.savez_compressed). Throws (invalid), naming the file, if it is not a zip
// archive (zip.h), if a member is not an .npy file (npy.h), and if a name occurs twice.
TensorMap load_npz(const std::string& path);
TensorMap load_npz(const Bytes& file);

// True if the file begins like a zip archive.
bool is_zip(const Bytes& file);

}  // namespace isonorm
