// Internal: what torch.save writes about the tensors of a state dict, a Python pickle. Nothing of it is run: it is read by a
// machine that knows the opcodes and the globals of such a dict, and refuses all others by name.
// Source: https://github.com/python/cpython/blob/main/Lib/pickletools.py; torch/_utils.py, torch/serialization.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

// A view of a storage, whose bytes lie elsewhere.
struct PickledTensor {
  TensorEntry entry;          // name, dtype and shape (with no axis of bytes); its place is not set
  std::string storage;        // its key
  int64_t storage_numel = 0;  // elements of it
  int64_t offset = 0;         // of the first element
  Dims strides = {};          // in elements
};

// The entries of the dict that the pickle makes, in its order. Throws (invalid), naming the byte and the opcode or global, on
// all that is not a dict or OrderedDict of tensors and parameters; on entries that occur twice, negative sizes, offsets and
// strides, more than 8 dimensions, and over 2^21 values at once.
std::vector<PickledTensor> read_pickle(std::string_view pickle);

}  // namespace isonorm::io
