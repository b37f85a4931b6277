#include "hub/config.h"

#include <algorithm>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "hub/folder.h"

namespace isonorm::hub {

Config::Config(std::string_view text) : values_(parsed(text)) {
  check(values_.is_object(), "config.json: no JSON object, or one deeper than ", kJsonDepth);
}

const json* Config::find(std::string_view key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &*at;
}

std::string Config::text_of(std::string_view key) const {
  const json* value = find(key);
  return value && !value->is_null() ? dump(*value) : "";
}

bool Config::own_code() const {
  const json* map = find("auto_map");
  return map && !map->empty();
}

int64_t Config::integer(std::string_view key) const {
  const json* value = find(key);
  check(value && value->is_number_unsigned() && value->get<uint64_t>() <= uint64_t{INT64_MAX}, "config.json: \"", key,
        "\" is ", value ? dump(*value) : "not there", ", expected a whole number");
  return value->get<int64_t>();
}

double Config::number(std::string_view key, double otherwise) const {
  const json* value = find(key);
  check(!value || value->is_number(), "config.json: \"", key, "\" is ", value ? dump(*value) : "",
        ", expected a number");
  return value ? value->get<double>() : otherwise;
}

bool Config::flag(std::string_view key, bool otherwise) const {
  const json* value = find(key);
  check(!value || value->is_boolean(), "config.json: \"", key, "\" is ", value ? dump(*value) : "",
        ", expected true or false");
  return value ? value->get<bool>() : otherwise;
}

std::string Config::word(std::string_view key) const {
  const json* value = find(key);
  check(!value || value->is_string(), "config.json: \"", key, "\" is ", value ? dump(*value) : "", ", expected a word");
  return value ? value->get<std::string>() : "";
}

std::string Config::architecture() const {
  const json* all = find("architectures");
  if (!all || !all->is_array() || all->empty() || !all->front().is_string()) return "";
  return all->front().get<std::string>();
}

SaidOfConversion converted(const Config& config) {
  const auto at = config.values().find("isonorm");
  if (at == config.values().end()) return {};
  constexpr const char* kEntries[] = {"version", "form", "fold", "width", "norms", "biases"};
  const auto has = [&](const char* key) { return at->contains(key); };
  const auto is_word = [](const json& value) { return value.is_string(); };
  const bool rotated = at->is_object() && has("rotation");
  check(at->is_object() && at->size() == std::size(kEntries) + rotated && std::ranges::all_of(kEntries, has) &&
            (*at)["version"] == kVersion && is_word((*at)["form"]) && is_word((*at)["fold"]) &&
            (*at)["norms"].is_object() && (*at)["biases"].is_array() && std::ranges::all_of((*at)["biases"], is_word) &&
            (!rotated || (is_word((*at)["rotation"]) && !(*at)["rotation"].get<std::string>().empty())),
        "config.json: \"isonorm\" is ", Shown{dump(*at)}, ", expected version ", kVersion,
        ", form, fold, width, norms and biases, and of a rotated model rotation");
  SaidOfConversion said{(*at)["form"].get<std::string>(), (*at)["fold"].get<std::string>(), {}, {}, {}};
  for (const json& name : (*at)["biases"]) said.biases.push_back(name.get<std::string>());
  if (rotated) said.rotation = (*at)["rotation"].get<std::string>();
  check(
      rotated ? said.form == "uncentred_rms_norm" || said.form == "crms_isometric" : said.form != "uncentred_rms_norm",
      "config.json: \"isonorm\" says the form ", Shown{said.form}, rotated ? " and a rotation" : " and no rotation",
      ": a rotated model is of uncentred_rms_norm or crms_isometric, one of uncentred_rms_norm is rotated");
  for (const auto& [name, norm] : (*at)["norms"].items()) said.gains[name] = norm.contains("gain");
  return said;
}

std::string different(const Config& a, const Config& b) {
  const auto free = [](const std::string& key) {
    for (const char* part : {"dropout", "pdrop", "layerdrop"})
      if (key.find(part) != key.npos) return true;
    for (const char* whole : {"isonorm", "tie_word_embeddings", "dtype", "torch_dtype", "transformers_version",
                              "_name_or_path", "initializer_range", "use_cache"})
      if (key == whole) return true;
    return false;
  };
  json all = a.values();
  all.update(b.values());
  std::string list;
  for (const auto& [key, _] : all.items()) {
    const std::string x = a.text_of(key), y = b.text_of(key);
    if (x != y && !free(key))
      list += text(list.empty() ? "" : ", ", key, ' ', Shown{x.empty() ? "none" : x}, " and ",
                   Shown{y.empty() ? "none" : y});
  }
  return list;
}

}  // namespace isonorm::hub
