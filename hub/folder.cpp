#include "hub/folder.h"

#include <bit>
#include <filesystem>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"

namespace isonorm::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kConfigLimit = int64_t{1} << 20, kIndexLimit = int64_t{1} << 26;  // bytes

std::string text_of(const std::string& path, int64_t limit) {
  const std::vector<uint8_t> bytes = read_all(open_bytes(path), limit);
  return {bytes.begin(), bytes.end()};
}

// Every binary16 number is one of f32. Source: IEEE 754-2019, 3.4.
float from_f16(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

Tensor widened(const Tensor& bytes, const Dims& shape) {
  Tensor x = empty(shape, {DType::f32});
  const uint8_t* from = bytes.data<uint8_t>();
  float* to = x.mutable_data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from_f16(static_cast<uint16_t>(from[2 * i] | from[2 * i + 1] << 8));
  return x;
}

Dims without_last(Dims shape) { return --shape.rank, shape; }

struct Shard {
  std::shared_ptr<const SafetensorsFile> file;
  const io::TensorEntry* entry;
};

// The files that hold the weights, each with the tensors that an index says are in it; none where there is no index.
std::map<std::string, std::set<std::string>> shards_of(const std::string& folder) {
  const std::string whole = folder + "/model.safetensors", index = whole + ".index.json";
  if (file_exists(whole)) return {{"model.safetensors", {}}};
  check(file_exists(index), folder, ": neither model.safetensors nor model.safetensors.index.json is there",
        file_exists(folder + "/pytorch_model.bin") || file_exists(folder + "/pytorch_model.bin.index.json")
            ? "; it holds a pickle, which may run any program: save the model with safetensors (save_pretrained)"
            : "");
  const Scope scope(index);
  const json j = parsed(text_of(index, kIndexLimit));
  const auto map = j.is_object() ? j.find("weight_map") : j.end();
  check(j.is_object() && map != j.end() && map->is_object() && !map->empty(), "no JSON object with a \"weight_map\"");
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [name, file] : map->items()) {
    check(file.is_string(), Shown{name}, " is in ", Shown{dump(file)}, ", expected the name of a file");
    const std::string shard = file.get<std::string>();
    check(shard == fs::path(shard).filename().string() && shard.ends_with(".safetensors") && shard[0] != '.',
          Shown{name}, " is in ", Shown{shard}, ", expected a safetensors file of this folder");
    shards[shard].insert(name);
  }
  return shards;
}

}  // namespace

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, _] : state.outline) names.push_back(name);
  return names;
}

Folder open_folder(const std::string& path) {
  const std::string config = path + "/config.json";
  check(file_exists(config), path, ": there is no config.json, which says what model this is");
  check(!file_exists(path + "/adapter_config.json"), path,
        ": adapter_config.json says that an adapter is added to the weights; merge it first");
  Folder folder{path,
                [&] {
                  const Scope scope(config);
                  return Config(text_of(config, kConfigLimit));
                }(),
                {},
                {}};
  auto places = std::make_shared<std::map<std::string, Shard>>();
  for (const auto& [name, listed] : shards_of(path)) {
    const auto file = std::make_shared<const SafetensorsFile>(path + '/' + name);
    const Scope scope(file->name());
    size_t found = 0;
    for (const io::TensorEntry& e : file->entries()) {
      found += listed.contains(e.name);
      check(listed.empty() || listed.contains(e.name), "the index does not say that ", Shown{e.name},
            " is in this file");
      check(places->emplace(e.name, Shard{file, &e}).second, Shown{e.name}, " is in another file, too");
      const bool half = e.foreign == "F16";
      folder.state.outline.add(e.name, half ? outline(without_last(e.shape), DType::f32) : outline(e.shape, e.dtype));
      if (!e.foreign.empty() && !half) folder.foreign[e.name] = e.foreign;
    }
    check(found == listed.size(), "the index says that ", listed.size(), " tensors are in this file, ", found,
          " of them are");
  }
  folder.state.read = [places](const std::string& name) {
    const Shard& s = places->at(name);
    const Tensor t = s.file->read(*s.entry);
    return s.entry->foreign == "F16" ? widened(t, without_last(s.entry->shape)) : t;
  };
  return folder;
}

}  // namespace isonorm::hub
