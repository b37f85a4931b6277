// The idx format of the MNIST family of data sets, plain or gzip-compressed, in one member or several. Files are not
// trusted: sizes are bounded before memory is allocated, and the data must be exactly as long as the header says.
#pragma once

#include <string>

#include "core/system/file.h"
#include "core/tensor.h"

namespace isonorm::data {

// Largest number of elements a file may declare: 2^31, forty times Fashion-MNIST.
inline constexpr int64_t kIdxLimit = int64_t{1} << 31;

// The array in an idx file: two zero bytes, type (0x08: unsigned byte, the only one read), rank (1 to 8), the sizes as
// big-endian 32-bit numbers, then the elements in row-major order. Result: u8. Throws (invalid) on anything else:
// another magic number or type, a rank outside of 1..8, more than kIdxLimit elements, more than deflate can hold in a
// file of this size, damaged compression, missing or left-over bytes. Format: http://yann.lecun.com/exdb/mnist (section
// "the IDX file format"); gzip: RFC 1952.
Tensor read_idx(const std::string& path);
Tensor read_idx(const Bytes& file);

}  // namespace isonorm::data
