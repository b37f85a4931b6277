// The safetensors format: named tensors and a map of strings in one file. A reader believes nothing: names, types,
// shapes and places of all tensors are checked against each other and against the size of the file before memory is
// taken for the first. Source: https://github.com/huggingface/safetensors (README, section "Format").
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

// Longest header that is read or written (the limit of the format's own library).
inline constexpr int64_t kSafetensorsHeaderLimit = 100'000'000;

namespace io {
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;
  int64_t begin = 0, end = 0;  // in bytes from the end of the header
  // Its dtype in the file where that is none of ours (BOOL, F16, I32, ...): it is held as bytes then, as u8 with an
  // axis more, last, where its elements are longer than one. Empty else.
  std::string foreign = {};
};
}  // namespace io

// A file whose tensors are read one at a time, when they are asked for.
class SafetensorsFile {
 public:
  // Reads and checks the header, as load_safetensors does; dtypes that are none of ours are taken as bytes.
  explicit SafetensorsFile(Bytes file);
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(open_bytes(path)) {}

  const std::string& name() const { return file_.name; }
  const std::vector<io::TensorEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  bool is_torch() const;  // the metadata say "format": "pt", as PyTorch's libraries write
  // Throws (invalid) where the tensor is larger than this machine's memory.
  Tensor read(const io::TensorEntry& entry) const;
  // Throws (invalid) where all tensors together are: to be called before they are held at once.
  void check_fits() const;

 private:
  Bytes file_;
  int64_t data_ = 0;  // where the elements begin
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

// Replaces the file with these tensors (any layout and device), all at once (see io::Replacement). A map that
// is_torch() gets the metadata "format": "pt". The data are stored in the order of falling element size, so that every
// element is aligned; the header keeps the order of the map. Throws if there is no tensor, a tensor is undefined, a
// name is too long (core/system/foreign_name.h), not UTF-8 or "__metadata__", or (io) the system refuses; then the old
// file stays.
void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata = {});
// The same with tensors that are made one at a time: `tensor` is called once for every entry, whose place need not be
// set. Throws, too, if a tensor has not the dtype and shape of its entry.
void save_safetensors(const std::string& path, std::vector<io::TensorEntry> entries, const Metadata& metadata,
                      const std::function<Tensor(const std::string& name)>& tensor);

}  // namespace isonorm
