// Internal: files of torch.save since PyTorch 1.6. They are zip archives: NAME/data.pkl describes the tensors
// (read_pickle), and NAME/data/KEY holds the elements of each storage. Nothing in the pickle is executed.
// Source: torch/serialization.py (_save), caffe2/serialize/inline_container.h.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

// Reads the Python pickle that describes the tensors of a state dict in a file of torch.save. Nothing in it
// is executed: the reader knows only the opcodes and globals that torch.save uses for tensors, and refuses all others
// by name.
// Source: https://github.com/python/cpython/blob/main/Lib/pickletools.py; torch/_utils.py, torch/serialization.py.

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

// Like SafetensorsFile: each tensor is read only when read() asks for it.
class TorchFile {
 public:
  // Throws (invalid), naming the file, if it is older than PyTorch 1.6, not an archive of this kind, compressed or
  // big-endian, or if its pickle is over 64 MiB. Also throws what zip_members() and read_pickle() throw, if a storage
  // is missing or its size differs from the pickle's, or if a tensor exceeds its storage.
  explicit TorchFile(Bytes file);
  explicit TorchFile(const std::string& path) : TorchFile(open_bytes(path)) {}

  const std::string& name() const { return file_.name; }
  bool is_torch() const { return true; }
  // In the order of the dict. An entry's byte range spans from its first to its last element, with gaps if it is not
  // contiguous.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  // Row-major. Throws (invalid) if the tensor is larger than this machine's memory.
  Tensor read(const TensorEntry& entry) const;

 private:
  Bytes file_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, Dims> strides_;  // of tensors that are not contiguous, over the elements as held
};

}  // namespace isonorm::io
