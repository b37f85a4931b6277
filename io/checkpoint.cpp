#include "io/checkpoint.h"

#include <zlib.h>
#include <charconv>
#include <filesystem>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "io/packed.h"
#include "io/replacement.h"

namespace isonorm {
namespace {

constexpr const char* kVersionKey = "isonorm.checkpoint";
constexpr const char* kChecksumKey = "isonorm.crc32";
constexpr const char* kVersion = "1";
constexpr const char* kPrevious = ".previous";
constexpr int64_t kHeaderAt = 8;  // offset of the header in a safetensors file: 8 bytes of length come first
constexpr std::string_view kWeights = kCheckpointWeights, kOptimizer = "optimizer.", kValue = kCheckpointValue;

// CRC-32 over values and tensors in order. Each part is preceded by its length, so that no two checkpoints give the
// same sequence of bytes.
class Checksum {
 public:
  void add(std::string_view s) {
    add_number(static_cast<int64_t>(s.size()));
    add_bytes(s.data(), s.size());
  }
  void add(const Tensor& tensor) {
    const Tensor t = io::packed(tensor);
    add(name_of(t.dtype()));
    add_number(t.rank());
    for (int64_t size : t.shape()) add_number(size);
    add_bytes(bytes_of(t), static_cast<size_t>(byte_size(t)));
  }
  std::string hex() const { return number_text(crc_, 16); }

 private:
  void add_number(int64_t n) { add_bytes(&n, sizeof n); }
  void add_bytes(const void* p, size_t n) {
    if (n > 0) crc_ = crc32_z(crc_, static_cast<const Bytef*>(p), n);  // if p is null, zlib starts again
  }
  uLong crc_ = 0;
};

// each(f) calls f(name, tensor) for all tensors in order.
template <class Each> std::string checksum_of(const Metadata& metadata, Each&& each) {
  Checksum sum;
  for (const auto& [key, value] : metadata) {
    if (key == kChecksumKey) continue;
    sum.add(key);
    sum.add(value);
  }
  each([&](const std::string& name, const Tensor& tensor) {
    sum.add(name);
    sum.add(tensor);
  });
  return sum.hex();
}

auto all_of(const TensorMap& tensors) {
  return [&](auto&& f) {
    for (const auto& [name, tensor] : tensors) f(name, tensor);
  };
}

template <class Each> void check_whole(const Metadata& metadata, Each&& each) {
  check(is_checkpoint(metadata), "checkpoint: this safetensors file is not a checkpoint");
  const std::string& version = text_at(metadata, kVersionKey);
  check(version == kVersion, "checkpoint: version ", printable(version, 80), ", expected ", kVersion);
  const std::string expected = checksum_of(metadata, each);
  const auto recorded = metadata.find(kChecksumKey);
  check(recorded != metadata.end() && recorded->second == expected, "checkpoint: the file is damaged: its checksum is ",
        expected, ", recorded ", Shown{recorded == metadata.end() ? "" : recorded->second});
}

void add_all(TensorMap& to, const TensorMap& from, std::string_view prefix) {
  for (const auto& [name, tensor] : from) {
    check(tensor.defined(), "checkpoint: tensor '", prefix, name, "' is undefined");
    to.add(text(prefix, name), tensor);
  }
}

// The number under `name`; the text must hold nothing else. format: std::chars_format for doubles, the base for
// integers.
template <class T> T number(const Metadata& values, std::string_view name, auto format, const char* kind) {
  const std::string& s = text_at(values, name);
  T value{};
  check(read_number(s, value, format), "checkpoint: value '", name, "' is ", Shown{s}, ", expected ", kind);
  return value;
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& c) {
  check(!c.weights.empty(), "checkpoint: there are no weights to save in ", path,
        "; a module has only parameters and children that were given to add()");
  TensorMap tensors;
  add_all(tensors, c.weights, kWeights);
  add_all(tensors, c.optimizer, kOptimizer);
  Metadata metadata{{kVersionKey, kVersion}};
  for (const auto& [name, value] : c.values) metadata.emplace(text(kValue, name), value);
  metadata[kChecksumKey] = checksum_of(metadata, all_of(tensors));
  save_safetensors(path, tensors, metadata);
}

Checkpoint load_checkpoint(const Bytes& file) {
  Metadata metadata;
  const TensorMap tensors = load_safetensors(file, &metadata);
  const Scope scope(file.name);
  check_whole(metadata, all_of(tensors));
  Checkpoint c;
  for (const auto& [name, tensor] : tensors) {
    const bool weight = name.starts_with(kWeights);
    check(weight || name.starts_with(kOptimizer), "checkpoint: unknown tensor ", Shown{name});
    (weight ? c.weights : c.optimizer).add(name.substr((weight ? kWeights : kOptimizer).size()), tensor);
  }
  for (const auto& [key, value] : metadata) {
    if (key == kVersionKey || key == kChecksumKey) continue;
    check(key.starts_with(kValue), "checkpoint: unknown entry ", Shown{key});
    c.values.emplace(key.substr(kValue.size()), value);
  }
  return c;
}

Checkpoint load_checkpoint(const std::string& path) { return load_checkpoint(open_bytes(path)); }

void check_checkpoint(const SafetensorsFile& file) {
  const Scope scope(file.name());
  check_whole(file.metadata(), [&](auto&& f) {
    for (const io::TensorEntry& e : file.entries()) f(e.name, file.read(e));
  });
}

std::string previous_checkpoint(const std::string& path) { return io::followed(path) + kPrevious; }

void check_previous_checkpoint(const std::string& path) {
  const std::string previous = previous_checkpoint(path), begin = text("{\"__metadata__\":{\"", kVersionKey, '"');
  check_io(io::begins_with(previous, begin, kHeaderAt), previous,
           ": is in the way: the checkpoint before the last is kept there, but the file is no checkpoint");
}

void keep_previous_checkpoint(const std::string& path) {
  check_previous_checkpoint(path);
  const std::filesystem::path last = io::followed(path), previous = previous_checkpoint(path);
  std::error_code ignored;
  std::filesystem::remove(previous, ignored);
  std::filesystem::create_hard_link(last, previous, ignored);
}

NewestCheckpoint load_newest_checkpoint(const std::string& path) {
  try {
    return {load_checkpoint(path), path};
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::io) throw;
    try {
      const std::string previous = previous_checkpoint(path);
      return {load_checkpoint(previous), previous};
    } catch (const Error&) {
      throw e;
    }
  }
}

void CheckpointFile::save(const Checkpoint& checkpoint) {
  if (is_whole_) keep_previous_checkpoint(path_);
  save_checkpoint(path_, checkpoint);
  is_whole_ = true;
}

std::optional<NewestCheckpoint> checkpoint_to_go_on_from(const std::string& path) {
  if (path.empty()) return {};
  if (!std::filesystem::exists(path)) {
    const std::string previous = previous_checkpoint(path);
    std::error_code none;  // an empty file is left if a process is killed while it tests whether it may write
    const auto bytes = std::filesystem::file_size(previous, none);
    check(none || bytes == 0, path, ": it is gone, but ", previous,
          " is there; rename it to continue from it, or remove it to start over");
    return {};
  }
  return load_newest_checkpoint(path);
}

Metadata checkpoint_values(const SafetensorsFile& file) {
  Metadata values;
  for (const auto& [key, value] : file.metadata())
    if (key.starts_with(kCheckpointValue)) values.emplace(key.substr(kCheckpointValue.size()), value);
  return values;
}

bool is_checkpoint(const Metadata& metadata) { return metadata.contains(kVersionKey); }

std::string exact(double value) { return number_text(value, std::chars_format::hex); }

const std::string& text_at(const Metadata& values, std::string_view name) {
  const auto at = values.find(std::string(name));
  check(at != values.end(), "checkpoint: there is no value '", name, "'");
  return at->second;
}

int64_t integer_at(const Metadata& values, std::string_view name) {
  return number<int64_t>(values, name, 10, "a whole number");
}

double number_at(const Metadata& values, std::string_view name) {
  return number<double>(values, name, std::chars_format::hex, "a hexadecimal number");
}

}  // namespace isonorm
