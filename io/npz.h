// NumPy's .npz files: named arrays, a zip archive of .npy files. A reader believes nothing: what the archive says of
// its members is checked against the size of the file before memory is taken for the first.
// Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16.
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor_map.h"

namespace isonorm {

// The arrays of an archive in the order of its directory, on the CPU, named as its members without ".npy"; members are
// stored or deflated (numpy.savez, numpy.savez_compressed). Throws (invalid), naming the file, where it is no zip
// archive that ends with its directory, on zip64, encryption, other methods and members that are no .npy (npy.h), on
// names that occur twice, on places that leave the file, sizes that deflate cannot reach, and a wrong CRC-32.
TensorMap load_npz(const std::string& path);
TensorMap load_npz(const Bytes& file);

// Whether a file begins as a zip archive does.
bool is_zip(const Bytes& file);

}  // namespace isonorm
