#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "io/fits.h"
#include "io/packed.h"
#include "io/replacement.h"

namespace isonorm {
namespace {

constexpr int64_t kPrefix = 8;  // size of the header's length
constexpr const char *kFormat = "format", *kTorch = "pt";

// Names the format of a file that is not safetensors, by its first bytes; null if they match no known format.
const char* other_format(const uint8_t* first) {
  if (std::memcmp(first, "PK\3\4", 4) == 0) return "a zip archive, as torch.save writes";
  if (first[0] == 0x80 && first[1] <= 5) return "a Python pickle, as torch.save writes";
  if (first[0] == '{') return "JSON, such as the index of a checkpoint in shards";
  return nullptr;
}

// Assigns begin and end to the entries by decreasing element size. Returns the indices in that order.
std::vector<size_t> place(std::vector<io::TensorEntry>& entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return io::element_size(entries[a]) > io::element_size(entries[b]); });
  int64_t reached = 0;
  for (size_t i : order) {
    io::TensorEntry& e = entries[i];
    e.begin = reached;
    e.end = reached = checked_add(reached, checked_mul(numel(e.shape), size_of(e.dtype), "safetensors"), "safetensors");
  }
  return order;
}

}  // namespace

SafetensorsFile::SafetensorsFile(Bytes file) : file_(std::move(file)) {
  const Scope scope(file_.name);
  check(file_.size >= kPrefix, "safetensors: ", file_.size, " bytes, shorter than the length of a header");
  uint8_t prefix[kPrefix];
  file_.read(0, prefix, kPrefix);
  uint64_t length = 0;
  for (int i = kPrefix - 1; i >= 0; --i) length = length << 8 | prefix[i];
  if (length > kSafetensorsHeaderLimit) {
    const char* other = other_format(prefix);
    check(other == nullptr, "safetensors: this is ", other ? other : "",
          "; expected one file written with safetensors' save_file");
    check(false, "safetensors: this is no safetensors file, its first 8 bytes say that the header has ", length,
          " bytes, over the limit of ", kSafetensorsHeaderLimit);
  }
  const auto n = static_cast<int64_t>(length);
  check(n <= file_.size - kPrefix, "safetensors: the header has ", n, " bytes, the file ", file_.size);
  std::string json(static_cast<size_t>(n), '\0');
  file_.read(kPrefix, json.data(), n);
  data_ = kPrefix + n;
  io::SafetensorsHeader header = io::parse_safetensors_header(json, file_.size - data_);
  entries_ = std::move(header.entries), metadata_ = std::move(header.metadata);
}

Tensor SafetensorsFile::read(const io::TensorEntry& e) const {
  const Scope scope(file_.name);
  io::check_fits(e.end - e.begin, "safetensors: tensor '" + e.name + "'");
  Tensor t = empty(e.shape, {e.dtype});
  file_.read(data_ + e.begin, mutable_bytes_of(t), e.end - e.begin);
  return t;
}

void SafetensorsFile::check_fits() const {
  const Scope scope(file_.name);
  io::check_fits(file_.size - data_, "safetensors: the whole");
}

bool SafetensorsFile::is_torch() const {
  const auto format = metadata_.find(kFormat);
  return format != metadata_.end() && format->second == kTorch;
}

TensorMap load_safetensors(const Bytes& bytes, Metadata* metadata) {
  const SafetensorsFile file(bytes);
  file.check_fits();
  const Scope scope(bytes.name);
  for (const io::TensorEntry& e : file.entries())
    check(e.foreign.empty(), "safetensors: tensor '", e.name, "' has dtype '", e.foreign,
          "', expected F32, F64, BF16, I64 or U8; load_state() converts it");
  TensorMap tensors;
  tensors.set_torch(file.is_torch());
  for (const io::TensorEntry& e : file.entries()) tensors.add(e.name, file.read(e));
  if (metadata) *metadata = file.metadata();
  return tensors;
}

TensorMap load_safetensors(const std::string& path, Metadata* metadata) {
  return load_safetensors(open_bytes(path), metadata);
}

void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  std::vector<io::TensorEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "safetensors: tensor '", name, "' is undefined");
    entries.push_back({name, tensor.dtype(), tensor.shape()});
  }
  Metadata with_format = metadata;
  if (tensors.is_torch()) with_format.emplace(kFormat, kTorch);
  save_safetensors(path, std::move(entries), with_format, [&](const std::string& name) { return tensors.at(name); });
}

void save_safetensors(const std::string& path, std::vector<io::TensorEntry> entries, const Metadata& metadata,
                      const std::function<Tensor(const std::string&)>& tensor) {
  check(!entries.empty(), "safetensors: there is no tensor to save in ", path,
        "; a module has only parameters and children that were given to add()");
  const std::vector<size_t> order = place(entries);
  const io::SafetensorsHeader header{std::move(entries), metadata};
  const std::string json = io::format_safetensors_header(header);
  check(static_cast<int64_t>(json.size()) <= kSafetensorsHeaderLimit, "safetensors: the header has ", json.size(),
        " bytes, over the limit of ", kSafetensorsHeaderLimit);
  uint8_t prefix[kPrefix];
  for (int i = 0; i < kPrefix; ++i) prefix[i] = static_cast<uint8_t>(json.size() >> (8 * i));
  io::Replacement file(path);
  file.write(prefix, kPrefix);
  file.write(json);
  for (size_t i : order) {
    const io::TensorEntry& e = header.entries[i];
    const Tensor t = io::packed(tensor(e.name));
    check(t.dtype() == e.dtype && t.shape() == e.shape, "safetensors: tensor '", e.name, "' is ", t.dtype(), ' ',
          t.shape(), ", its entry ", e.dtype, ' ', e.shape);
    file.write(bytes_of(t), byte_size(t));
  }
  file.commit();
}

}  // namespace isonorm
