// The safetensors format: named tensors and a map of strings in one file. The reader trusts nothing: names, dtypes,
// shapes and offsets of the tensors are checked against each other and against the size of the file before memory is
// allocated.
// Source: https://github.com/huggingface/safetensors (README, section "Format").
//
//   8 bytes   n, the length of the header, little-endian
//   n bytes   JSON: {"__metadata__": {"key": "text"},
//                    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//   the rest  the elements, row-major, little-endian; the offsets count from here
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/file.h"
#include "core/tensor_map.h"

namespace isonorm {

using Metadata = std::map<std::string, std::string>;

// Longest header that is read or written (the limit of the safetensors library).
inline constexpr int64_t kSafetensorsHeaderLimit = 100'000'000;

namespace io {
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;
  int64_t begin = 0, end = 0;  // bytes after the header; in TorchFile and FlaxFile, bytes in the file
  // The dtype in the file if Tensor lacks it (BOOL, F16, I32, ...), else empty. Such a tensor is held as u8, with an
  // additional last axis if an element has more than one byte.
  std::string foreign = {};
};
}  // namespace io

// A file whose tensors are read on demand, one at a time.
class SafetensorsFile {
 public:
  // Reads and checks the header, as load_safetensors() does. Dtypes that Tensor lacks are held as bytes.
  explicit SafetensorsFile(Bytes file);
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(open_bytes(path)) {}

  const std::string& name() const { return file_.name; }
  const std::vector<io::TensorEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  bool is_torch() const;  // the metadata say "format": "pt", as PyTorch's libraries write
  // Throws (invalid) if the tensor is larger than this machine's memory.
  Tensor read(const io::TensorEntry& entry) const;
  // Throws (invalid) if all tensors together are larger than this machine's memory. Call it before loading them all.
  void check_fits() const;

 private:
  Bytes file_;
  int64_t data_ = 0;  // offset of the elements
  std::vector<io::TensorEntry> entries_;
  Metadata metadata_;
};

// The tensors of a file in the order of its header, on the CPU; dtypes F32, F64, BF16, I64 and U8. `metadata`, if it is
// not null, gets the file's metadata. The metadata "format": "pt" makes the map is_torch().
//
// Throws (invalid), naming the file, if the header is longer than the limit or the file, does not start with '{' or is
// not strict JSON of this form; if a name, key or dtype occurs twice, is missing or unknown; if a tensor has more than
// 8 dimensions or a size that does not fit its shape and dtype; if places overlap, leave a hole, leave the file or do
// not reach its end; and if the tensors are larger than this machine's memory.
TensorMap load_safetensors(const std::string& path, Metadata* metadata = nullptr);
TensorMap load_safetensors(const Bytes& file, Metadata* metadata = nullptr);

// Replaces the file atomically with these tensors, of any layout and device (see io::Replacement). A map that
// is_torch() gets the metadata "format": "pt". The data are stored by decreasing element size, so that every element is
// aligned; the header keeps the order of the map. Throws if there is no tensor, if a tensor is undefined, if a name is
// too long (core/system/name_pattern.h), not UTF-8 or "__metadata__", or (io) if the system refuses; then the old file
// stays.
void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata = {});
// The same with tensors that are computed one at a time: `tensor` is called once for every entry. begin and end of the
// entries need not be set. Also throws if a tensor has not the dtype and shape of its entry.
void save_safetensors(const std::string& path, std::vector<io::TensorEntry> entries, const Metadata& metadata,
                      const std::function<Tensor(const std::string& name)>& tensor);

}  // namespace isonorm

namespace isonorm::io {

// The header of a safetensors file, without the tensors' data.

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  Metadata metadata;
};

// Bytes per element in the file.
int64_t element_size(const TensorEntry& entry);

// Parses the JSON and checks that the entries fill [0, data_bytes) without hole or overlap. Throws what
// load_safetensors() throws.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes);

// The JSON, padded with spaces so that its length plus the 8 bytes before it is a multiple of 8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace isonorm::io
