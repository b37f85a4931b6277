#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/file.h"
#include "exchange/hub/folder.h"
#include "io/replacement.h"
#include "io/unfinished.h"

namespace isonorm::hub {

extern const char* const kIsonormTorch;  // exchange/hub/isonorm_torch.py (cmake/library.cmake)

namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";

void write_text(const std::string& path, const std::string& content) {
  io::Replacement file(path);
  file.write(content);
  file.commit();
}

int64_t bytes_of(const io::TensorEntry& e) { return checked_mul(numel(e.shape), size_of(e.dtype), "safetensors"); }

// Groups the entries in order, each group of at most `most` bytes. A larger entry is a group of its own.
std::vector<std::vector<io::TensorEntry>> in_shards(const std::vector<io::TensorEntry>& entries, int64_t most) {
  std::vector<std::vector<io::TensorEntry>> shards;
  int64_t filled = 0;
  for (const io::TensorEntry& e : entries) {
    if (shards.empty() || filled > most - bytes_of(e)) shards.emplace_back(), filled = 0;
    shards.back().push_back(e), filled += bytes_of(e);
  }
  return shards;
}

void write_weights(const std::string& folder, const FolderContent& c, int64_t most) {
  const auto shards = in_shards(c.entries, most);
  if (shards.size() == 1) return save_safetensors(folder + '/' + kWeights, c.entries, c.metadata, c.read);
  json index{{"metadata", {{"total_size", 0}}}, {"weight_map", json::object()}};
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = printed("model-%05d-of-%05d.safetensors", i + 1, shards.size());
    for (const io::TensorEntry& e : shards[i]) index["weight_map"][e.name] = name, total += bytes_of(e);
    save_safetensors(folder + '/' + name, shards[i], c.metadata, c.read);
  }
  index["metadata"]["total_size"] = total;
  write_text(folder + '/' + kWeights + ".index.json", dump(index, 2) + '\n');
}

// The name of the dtype in config.json; null for integer and other types.
const char* type_of(const io::TensorEntry& e) {
  if (e.foreign == io::kHalf) return "float16";
  if (!e.foreign.empty() || !is_floating(e.dtype)) return nullptr;
  return e.dtype == DType::f32 ? "float32" : e.dtype == DType::f64 ? "float64" : "bfloat16";
}

std::string config_of(const FolderContent& c) {
  json config = c.config;
  std::set<std::string> types;
  for (const io::TensorEntry& e : c.entries)
    if (const char* type = type_of(e)) types.insert(type);
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.contains(key) && types.size() == 1) config[key] = *types.begin();
  return dump(config, 2) + '\n';
}

// Weight files of any framework, whole or sharded, and their indices.
bool is_weights(const fs::path& file) {
  const std::string name = file.filename().string();
  return std::ranges::any_of(std::initializer_list<const char*>{".safetensors", ".bin", ".h5", ".msgpack", ".pt",
                                                                ".pth", ".onnx", ".gguf", ".index.json"},
                             [&](const char* end) { return name.ends_with(end); });
}

// The files that are copied unchanged. A broken link is included: opening it gives the error.
std::vector<fs::path> companions(const std::string& folder) {
  std::vector<fs::path> files;
  if (folder.empty()) return files;
  std::error_code error;
  const fs::directory_iterator all(folder, error);
  check_io(!error, folder, ": ", error.message());
  for (const fs::directory_entry& e : all)
    if ((e.is_regular_file() || !e.exists()) && !is_weights(e.path()) && e.path().filename() != "config.json")
      files.push_back(e.path());
  return files;
}

// A random name, in the folder of `target`, that no other file has.
std::string temporary_name(const fs::path& target) {
  std::random_device random;
  return target.string() + printed(".tmp.%08x%08x", random(), random());
}

// The entry "isonorm" of config.json.
json entry_of(const Converted& c) {
  const auto there = [&](const std::string& name) {
    return std::ranges::any_of(c.entries, [&](const auto& e) { return e.name == name; });
  };
  const int64_t width = c.plans.empty() ? 0 : c.plans.front().width;
  json norms = json::object();
  std::map<std::string, std::vector<std::string>> lists;
  std::set<std::string> scales;
  for (const streams::Plan& s : c.plans) {
    for (const streams::Plan::Norm& n : s.norms) {
      if (s.is_behind_table(n)) {
        lists["identity"].push_back(n.name);
        continue;
      }
      norms[n.name]["eps"] = n.eps;
      if (s.width != width) norms[n.name]["width"] = s.width;
      if (there(n.name + ".weight")) norms[n.name]["gain"] = n.plus_one ? "1+w" : "w";
      if (there(n.name + ".bias")) norms[n.name]["bias"] = "b";
    }
    if (!s.recentred.empty() && row_of(streams::form_named(c.form)).centres())
      lists["recentred"].push_back(s.recentred);
    for (const streams::Plan::Writer& w : s.writers)
      if (!w.scale.empty()) scales.insert(w.scale);
  }
  if (!scales.empty()) lists["scales"].assign(scales.begin(), scales.end());
  json says = {{"version", kVersion}, {"form", c.form}, {"fold", c.fold},
               {"width", width},      {"norms", norms}, {"biases", c.biases}};
  says.update(json(lists));
  return says;
}

}  // namespace

json llama_config(const Config& config) {
  const std::string type = config.word("model_type"), clip = config.text_of("clip_qkv");
  check(type == "olmo", "config.json: a model of type '", type,
        "' has other layers than a LLaMA, or norms with a bias: only olmo becomes a LLaMA");
  check(clip.empty(), "config.json: \"clip_qkv\" is ", clip, ": a LLaMA does not clip queries, keys and values");
  check(!config.own_code(), "config.json names code of its own (auto_map), which may not be a LLaMA's");
  json llama = config.values();
  llama["model_type"] = "llama";
  const bool head = config.architecture() == "OlmoForCausalLM";
  llama["architectures"] = {head ? "LlamaForCausalLM" : "LlamaModel"};
  llama["rms_norm_eps"] = 1e-5;
  llama["mlp_bias"] = false;
  for (const char* key : {"clip_qkv", "pretraining_tp"}) llama.erase(key);
  // A missing key means OLMo's default, which differs from LLaMA's.
  const json defaults{{"vocab_size", 50304}, {"pad_token_id", 1}, {"bos_token_id", nullptr}, {"eos_token_id", 50279}};
  for (const auto& [key, value] : defaults.items())
    if (!llama.contains(key)) llama[key] = value;
  return llama;
}

void check_new_folder(const std::string& path, const std::string& beside) {
  check(!path.empty() && !file_exists(path), path, ": it is there already; expected the name of a new folder");
  fs::path around = (fs::absolute(path) / ".").lexically_normal().parent_path().parent_path();
  while (!fs::exists(around)) around = around.parent_path();
  const bool writable = faccessat(AT_FDCWD, around.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  const int reason = errno;
  check_io(fs::is_directory(around), path, ": ", around.string(), " is not a folder");
  check_io(writable, path, ": cannot be made in ", around.string(), ": ", std::strerror(reason));
  for (const fs::path& file : companions(beside)) open_bytes(file.string());
}

void write_folder(const std::string& path, const FolderContent& content, int64_t shard) {
  fs::path target = fs::path(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/"
  io::Unfinished unfinished(temporary_name(target));
  const fs::path folder = unfinished.path();
  try {
    fs::create_directories(folder);
    for (const fs::path& file : companions(content.beside)) fs::copy_file(file, folder / file.filename());
    write_weights(folder.string(), content, shard);
    write_text((folder / "config.json").string(), config_of(content));
    for (const auto& [name, words] : content.texts) write_text((folder / name).string(), words);
    fs::rename(folder, target);
    unfinished.finish();
  } catch (const fs::filesystem_error& e) {
    raise(ErrorKind::io, text(path, ": ", e.code().message()), __FILE__, __LINE__);
  }
}

void write_folder(const std::string& path, const Folder& source, const Converted& c, int64_t shard) {
  json config = c.config;
  config["tie_word_embeddings"] = false;
  if (config.contains("layerscale_value")) config["layerscale_value"] = 1.0;  // scales are folded into their writers
  json& says = config["isonorm"];
  if (c.rotation.empty())
    says = entry_of(c);
  else
    says["form"] = c.form, says["rotation"] = c.rotation;
  Metadata metadata = {{"format", "pt"}, {streams::kStreamForm, c.form}};
  if (const auto at = says.find("recentred"); at != says.end()) metadata[streams::kStreamRecentred] = dump(*at);
  const FolderContent content{c, std::move(config), metadata, source.path, {{"isonorm_torch.py", kIsonormTorch}}};
  write_folder(path, content, shard);
}

}  // namespace isonorm::hub
