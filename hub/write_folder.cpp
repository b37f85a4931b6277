#include <algorithm>
#include <filesystem>
#include <random>

#include "core/error.h"
#include "core/printed.h"
#include "hub/folder.h"
#include "io/replacement.h"

namespace isonorm::hub {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";

void write_text(const std::string& path, const std::string& content) {
  io::Replacement file(path);
  file.write(content);
  file.commit();
}

int64_t bytes_of(const io::TensorEntry& e) { return checked_mul(numel(e.shape), size_of(e.dtype), "safetensors"); }

// Entries in groups of at most `most` bytes, in order.
std::vector<std::vector<io::TensorEntry>> in_shards(const std::vector<io::TensorEntry>& entries, int64_t most) {
  std::vector<std::vector<io::TensorEntry>> shards;
  int64_t filled = 0;
  for (const io::TensorEntry& e : entries) {
    if (shards.empty() || filled > most - bytes_of(e)) shards.emplace_back(), filled = 0;
    shards.back().push_back(e), filled += bytes_of(e);
  }
  return shards;
}

void write_weights(const std::string& folder, const Converted& c, int64_t most) {
  const Metadata metadata = {{"format", "pt"}, {"stream.form", c.form}};
  const auto shards = in_shards(c.entries, most);
  if (shards.size() == 1) return save_safetensors(folder + '/' + kWeights, c.entries, metadata, c.read);
  json index{{"metadata", {{"total_size", 0}}}, {"weight_map", json::object()}};
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = printed("model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    for (const io::TensorEntry& e : shards[i]) index["weight_map"][e.name] = name, total += bytes_of(e);
    save_safetensors(folder + '/' + name, shards[i], metadata, c.read);
  }
  index["metadata"]["total_size"] = total;
  write_text(folder + '/' + kWeights + ".index.json", dump(index, 2) + '\n');
}

std::string config_of(const Folder& source, const Converted& c) {
  json config = source.config.values();
  config["tie_word_embeddings"] = false;
  const std::pair<DType, const char*> names[] = {
      {DType::f32, "float32"}, {DType::f64, "float64"}, {DType::bf16, "bfloat16"}};
  const auto all = [&](DType dtype) {
    return std::ranges::all_of(c.entries, [&](const auto& e) { return e.dtype == dtype || !is_floating(e.dtype); });
  };
  for (const char* key : {"dtype", "torch_dtype"})
    for (const auto& [dtype, name] : names)
      if (config.contains(key) && all(dtype)) config[key] = name;
  config["isonorm"] = {{"form", c.form}, {"fold", c.fold}, {"norms", c.norms}};
  if (!c.rotation.empty()) config["isonorm"]["rotation"] = c.rotation;
  return dump(config, 2) + '\n';
}

// Weights of any framework, whole or in parts, and what lists them.
bool is_weights(const fs::path& file) {
  const std::string name = file.filename().string();
  return std::ranges::any_of(std::initializer_list<const char*>{".safetensors", ".bin", ".h5", ".msgpack", ".pt",
                                                                ".pth", ".onnx", ".gguf", ".index.json"},
                             [&](const char* end) { return name.ends_with(end); });
}

// A folder beside another one, under a name that nobody has; removed where it did not become that.
struct Unfinished {
  explicit Unfinished(const fs::path& target) {
    std::random_device random;
    path = target.string() + printed(".tmp.%08x%08x", random(), random());
  }
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  fs::path path;
};

}  // namespace

void write_folder(const std::string& path, const Folder& source, const Converted& converted, int64_t shard) {
  fs::path target = fs::path(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/"
  const Unfinished folder(target);
  try {
    fs::create_directory(folder.path);
    for (const fs::directory_entry& e : fs::directory_iterator(source.path))
      if (e.is_regular_file() && !is_weights(e.path()) && e.path().filename() != "config.json")
        fs::copy_file(e.path(), folder.path / e.path().filename());
    write_weights(folder.path.string(), converted, shard);
    write_text((folder.path / "config.json").string(), config_of(source, converted));
    fs::rename(folder.path, target);
  } catch (const fs::filesystem_error& e) {
    raise(ErrorKind::io, text(path, ": ", e.code().message()), __FILE__, __LINE__);
  }
}

}  // namespace isonorm::hub
