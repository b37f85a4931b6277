// Internal: reads the Python pickle that describes the tensors of a state dict in a file of torch.save. Nothing in it
// is executed: the reader knows only the opcodes and globals that torch.save uses for tensors, and refuses all others
// by name.
// Source: https://github.com/python/cpython/blob/main/Lib/pickletools.py; torch/_utils.py, torch/serialization.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

// A strided view of a storage. The storage's bytes are in another member of the archive.
struct PickledTensor {
  TensorEntry entry;          // name, dtype and shape (without an axis of bytes); begin and end are not set
  std::string storage;        // the storage's key
  int64_t storage_numel = 0;  // elements of the storage
  int64_t offset = 0;         // of the first element, in elements
  Dims strides = {};          // in elements
};

// The entries of the dict that the pickle describes, in order. Throws (invalid), naming the byte and the opcode or
// global, on anything but a dict or OrderedDict of tensors and parameters. Also throws on repeated entries, negative
// sizes, offsets and strides, more than 8 dimensions, and over 2^21 values at once.
std::vector<PickledTensor> read_pickle(std::string_view pickle);

}  // namespace isonorm::io
