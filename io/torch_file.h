// Internal: files of torch.save since PyTorch 1.6, a zip archive: NAME/data.pkl says what tensors there are (pickle.h), and
// NAME/data/KEY holds the elements of each storage. Nothing of the pickle is run.
// Source: torch/serialization.py (_save), caffe2/serialize/inline_container.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

// A file whose tensors are read one at a time, when they are asked for; as SafetensorsFile.
class TorchFile {
 public:
  // Throws (invalid), naming the file, where it is older than PyTorch 1.6, no such archive, compressed, big-endian, or where
  // its pickle is over 64 MiB; as zip_members() and read_pickle(); and where a storage is missing or has another size than
  // the pickle says, a tensor has more elements than its storage, or leaves it.
  explicit TorchFile(Bytes file);
  explicit TorchFile(const std::string& path) : TorchFile(open_bytes(path)) {}

  const std::string& name() const { return file_.name; }
  bool is_torch() const { return true; }
  // In the order of the dict; each is the range of bytes that the tensor has, with gaps where it is not contiguous.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  // In row-major order. Throws (invalid) where the tensor is larger than this machine's memory.
  Tensor read(const TensorEntry& entry) const;

 private:
  Bytes file_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, Dims> strides_;  // of tensors that are not contiguous
};

}  // namespace isonorm::io
