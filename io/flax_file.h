// Internal: files of flax.serialization.to_bytes, such as flax_model.msgpack: MessagePack of maps in maps, whose leaves are
// arrays. Source: flax/serialization.py (_ndarray_to_bytes, _chunk); github.com/msgpack/msgpack, spec.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::io {

// A file whose tensors are read one at a time, when they are asked for; as SafetensorsFile.
class FlaxFile {
 public:
  struct Piece {
    int64_t begin = 0, size = 0;  // in bytes
  };

  // Throws (invalid), naming file, byte and path, on what is not such a tree, a key that is there twice, an array whose bytes
  // are not as many as its shape and dtype say, more than 8 dimensions, 32 levels or 64 MiB of keys, and on bytes behind it.
  explicit FlaxFile(Bytes file);
  explicit FlaxFile(const std::string& path) : FlaxFile(open_bytes(path)) {}

  const std::string& name() const { return file_.name; }
  // In the order of the file, each with the keys of its path, joined by dots.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  // In row-major order. Throws (invalid) where the tensor is larger than this machine's memory.
  Tensor read(const TensorEntry& entry) const;

 private:
  Bytes file_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::vector<Piece>> pieces_;  // of tensors in chunks
};

}  // namespace isonorm::io
