#include "exchange/hub/folder.h"

#include <filesystem>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "exchange/hub/flax.h"
#include "io/flax_file.h"
#include "io/half.h"
#include "io/torch_file.h"

namespace isonorm::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kConfigLimit = int64_t{1} << 20, kIndexLimit = int64_t{1} << 26;  // bytes

template <class File> Shard shard_of(const std::shared_ptr<const File>& file) {
  return {file->entries(), [file](const io::TensorEntry& e) { return file->read(e); }};
}
Shard opened_safetensors(const std::string& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  const auto format = file->metadata().find("format");
  const Scope scope(path);
  return format != file->metadata().end() && format->second == "flax" ? from_flax(shard_of(file)) : shard_of(file);
}
Shard opened_torch(const std::string& path) { return shard_of(std::make_shared<const io::TorchFile>(path)); }
Shard opened_flax(const std::string& path) {
  const auto file = std::make_shared<const io::FlaxFile>(path);
  const Scope scope(path);
  return from_flax(shard_of(file));
}

// The names of weight files of a format: a single file, and the end of the names of shards.
struct Format {
  const char *whole, *end;
  Shard (*open)(const std::string& path);
  std::string (*name)(std::string of_index);  // converts a tensor's name in the index to its name here
};
std::string as_it_is(std::string name) { return name; }
// In order of preference.
constexpr Format kFormats[] = {{"model.safetensors", ".safetensors", opened_safetensors, as_it_is},
                               {"pytorch_model.bin", ".bin", opened_torch, as_it_is},
                               {"flax_model.msgpack", ".msgpack", opened_flax, pytorch_name}};

struct Weights {
  const Format& format;
  // The files, each with its tensors according to the index; without an index the sets are empty.
  std::map<std::string, std::set<std::string>> files;
};

Weights listed_weights(const Format& format, const std::string& index) {
  const std::string content = read_text(index, kIndexLimit);
  const Scope scope(index);
  const json j = parsed(content);
  const auto map = j.is_object() ? j.find("weight_map") : j.end();
  check(j.is_object() && map != j.end() && map->is_object() && !map->empty(), "no JSON object with a \"weight_map\"");
  Weights weights{format, {}};
  for (const auto& [name, file] : map->items()) {
    check(file.is_string(), Shown{name}, " is in ", Shown{dump(file)}, ", expected the name of a file");
    const std::string shard = file.get<std::string>();
    check(shard == fs::path(shard).filename().string() && shard.ends_with(format.end) && shard[0] != '.', Shown{name},
          " is in ", Shown{shard}, ", expected a file of this folder that ends with ", format.end);
    weights.files[shard].insert(format.name(name));
  }
  return weights;
}

Weights weights_of(const std::string& folder) {
  std::string names;
  for (const Format& format : kFormats) {
    const std::string whole = folder + '/' + format.whole, index = whole + ".index.json";
    if (file_exists(whole)) return {format, {{format.whole, {}}}};
    if (file_exists(index)) return listed_weights(format, index);
    names += text(names.empty() ? "" : ", ", format.whole, ", ", format.whole, ".index.json");
  }
  check(false, folder, ": there are no weights, expected ", names);
  return {kFormats[0], {}};
}

}  // namespace

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, _] : state.outline) names.push_back(name);
  return names;
}

Config read_config(const std::string& folder) {
  const std::string content = read_text(folder + "/config.json", kConfigLimit);
  const Scope scope(folder);  // Config names the file
  return Config(content);
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files = {folder + "/config.json"};
  for (const Format& format : kFormats) {
    const std::string whole = folder + '/' + format.whole, index = whole + ".index.json";
    files.insert(files.end(), {whole, index});
    try {
      if (file_exists(index))
        for (const auto& [shard, _] : listed_weights(format, index).files) files.push_back(folder + '/' + shard);
    } catch (const Error&) {  // open_folder() reports the error in the index
    }
  }
  return files;
}

Folder open_folder(const std::string& path) {
  const std::string config = path + "/config.json";
  check(file_exists(config), path, ": there is no config.json, which says what model this is");
  check(!file_exists(path + "/adapter_config.json"), path,
        ": adapter_config.json says that an adapter is added to the weights; merge it first");
  Folder folder{path, read_config(path), {}, {}};
  const std::string others = folder.config.text_of("transformers_weights");
  check(others.empty(), path, ": config.json: \"transformers_weights\" is ", Shown{others},
        ", another file than the usual ones, which is not supported");
  using Place = std::pair<std::shared_ptr<const Shard>, io::TensorEntry>;
  const auto places = std::make_shared<std::map<std::string, Place>>();
  const Weights weights = weights_of(path);
  for (const auto& [name, listed] : weights.files) {
    const std::string file = path + '/' + name;
    const auto shard = std::make_shared<const Shard>(weights.format.open(file));
    const Scope scope(file);
    size_t found = 0;
    for (const io::TensorEntry& e : shard->entries) {
      found += listed.contains(e.name);
      check(listed.empty() || listed.contains(e.name), "the index does not say that ", Shown{e.name},
            " is in this file");
      check(places->emplace(e.name, Place{shard, e}).second, Shown{e.name}, " is in another file, too");
      io::add_entry(folder.state, folder.foreign, e.name, e);
    }
    check(found == listed.size(), "the index lists ", listed.size(), " tensors in this file, only ", found,
          " are in it");
  }
  folder.state.read = [places](const std::string& name) {
    const auto& [shard, entry] = places->at(name);
    return io::held(entry, shard->read(entry));
  };
  return folder;
}

}  // namespace isonorm::hub
