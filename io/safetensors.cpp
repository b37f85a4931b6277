#include "io/safetensors.h"

#include <algorithm>

#include "io/file.h"
#include "io/packed.h"
#include "io/safetensors_header.h"

namespace isonorm {
namespace {

constexpr int64_t kPrefix = 8;  // bytes of the header's length

// Entries in the order of the map; places in the order of falling element size. Returns the order of the places.
std::vector<size_t> place(const TensorMap& tensors, io::SafetensorsHeader& header) {
  std::vector<size_t> order;
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "safetensors: tensor '", name, "' is undefined");
    order.push_back(order.size());
    header.entries.push_back({name, tensor.dtype(), tensor.shape()});
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(header.entries[a].dtype) > size_of(header.entries[b].dtype);
  });
  int64_t reached = 0;
  for (size_t i : order) {
    io::TensorEntry& e = header.entries[i];
    e.begin = reached;
    e.end = reached = checked_add(reached, checked_mul(numel(e.shape), size_of(e.dtype), "safetensors"), "safetensors");
  }
  return order;
}

}  // namespace

TensorMap load_safetensors(const Bytes& file, Metadata* metadata) {
  const Scope scope(file.name);
  check(file.size >= kPrefix, "safetensors: ", file.size, " bytes, shorter than the length of a header");
  uint8_t prefix[kPrefix];
  file.read(0, prefix, kPrefix);
  uint64_t length = 0;
  for (int i = kPrefix - 1; i >= 0; --i) length = length << 8 | prefix[i];
  check(length <= kSafetensorsHeaderLimit, "safetensors: the header has ", length, " bytes, over the limit of ",
        kSafetensorsHeaderLimit);
  const auto n = static_cast<int64_t>(length);
  check(n <= file.size - kPrefix, "safetensors: the header has ", n, " bytes, the file ", file.size);
  std::string json(static_cast<size_t>(n), '\0');
  file.read(kPrefix, json.data(), n);
  io::SafetensorsHeader header = io::parse_safetensors_header(json, file.size - kPrefix - n);
  TensorMap tensors;
  for (const io::TensorEntry& e : header.entries) {
    const Tensor t = empty(e.shape, {e.dtype});
    file.read(kPrefix + n + e.begin, io::mutable_bytes_of(t), e.end - e.begin);
    tensors.add(e.name, t);
  }
  if (metadata) *metadata = std::move(header.metadata);
  return tensors;
}

TensorMap load_safetensors(const std::string& path, Metadata* metadata) {
  return load_safetensors(open_bytes(path), metadata);
}

void save_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  io::SafetensorsHeader header;
  header.metadata = metadata;
  const std::vector<size_t> order = place(tensors, header);
  const std::string json = io::format_safetensors_header(header);
  check(static_cast<int64_t>(json.size()) <= kSafetensorsHeaderLimit, "safetensors: the header has ", json.size(),
        " bytes, over the limit of ", kSafetensorsHeaderLimit);
  uint8_t prefix[kPrefix];
  for (int i = 0; i < kPrefix; ++i) prefix[i] = static_cast<uint8_t>(json.size() >> (8 * i));
  io::Replacement file(path);
  file.write(prefix, kPrefix);
  file.write(json);
  for (size_t i : order) {
    const Tensor t = io::packed((tensors.begin() + static_cast<std::ptrdiff_t>(i))->second);
    file.write(io::bytes_of(t), io::byte_size(t));
  }
  file.commit();
}

}  // namespace isonorm
