// Internal: files of flax.serialization.to_bytes, such as flax_model.msgpack: nested MessagePack maps whose leaves are
// arrays.
// Source: flax/serialization.py (_ndarray_to_bytes, _chunk); github.com/msgpack/msgpack, spec.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

// Like SafetensorsFile: each tensor is read only when read() asks for it.
class FlaxFile {
 public:
  struct Piece {
    int64_t begin = 0, size = 0;  // in bytes
  };

  // Throws (invalid), naming file, byte and path, if the content is not a tree of arrays, if a key occurs twice, if an
  // array's bytes do not match its shape and dtype, or if bytes follow the tree. Also throws beyond 8 dimensions, 32
  // levels of maps or 64 MiB of keys.
  explicit FlaxFile(Bytes file);
  explicit FlaxFile(const std::string& path) : FlaxFile(open_bytes(path)) {}

  const std::string& name() const { return file_.name; }
  // In the order of the file. A tensor's name is the keys of its path, joined by dots.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  // Row-major. Throws (invalid) if the tensor is larger than this machine's memory.
  Tensor read(const TensorEntry& entry) const;

 private:
  Bytes file_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::vector<Piece>> pieces_;  // the byte ranges of tensors stored in chunks
};

}  // namespace isonorm::io
