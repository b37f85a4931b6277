// Internal: files of torch.save since PyTorch 1.6. They are zip archives: NAME/data.pkl describes the tensors
// (pickle.h), and NAME/data/KEY holds the elements of each storage. Nothing in the pickle is executed.
// Source: torch/serialization.py (_save), caffe2/serialize/inline_container.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

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
