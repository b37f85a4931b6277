#include "exchange/hub/config.h"

#include <algorithm>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "exchange/hub/folder.h"
#include "streams/form.h"

namespace isonorm::hub {
namespace {

// Second names that a program accepts for keys, by "model_type". Sources: attribute_map in transformers'
// configuration_<type>.py, and "n_embed" there.
struct Aliases {
  std::string_view type;
  std::vector<std::pair<std::string_view, std::string_view>> names;  // (alias, key)
};

const std::vector<Aliases>& aliases() {
  static const std::vector<std::pair<std::string_view, std::string_view>> kGpt2 = {
      {"hidden_size", "n_embd"},
      {"max_position_embeddings", "n_positions"},
      {"num_attention_heads", "n_head"},
      {"num_hidden_layers", "n_layer"}};
  static const std::vector<Aliases> all = {
      {"gpt2", kGpt2},
      {"gpt_bigcode", kGpt2},
      {"gptj", kGpt2},
      {"codegen", kGpt2},
      {"bloom", {{"num_hidden_layers", "n_layer"}, {"num_attention_heads", "n_head"}, {"n_embed", "hidden_size"}}},
      {"falcon", {{"n_embed", "hidden_size"}}},
      {"mpt", {{"num_attention_heads", "n_heads"}, {"hidden_size", "d_model"}, {"num_hidden_layers", "n_layers"}}},
      {"whisper",
       {{"num_key_value_heads", "encoder_attention_heads"},
        {"num_attention_heads", "encoder_attention_heads"},
        {"hidden_size", "d_model"},
        {"num_hidden_layers", "encoder_layers"}}}};
  return all;
}

}  // namespace

Config::Config(std::string_view text) : values_(parsed(text)) {
  check(values_.is_object(), "config.json: no JSON object, or one deeper than ", kJsonDepth);
  const json* type = find("model_type");
  for (const Aliases& of : aliases())
    if (type && *type == of.type)
      for (const auto& [alias, name] : of.names) rename(alias, name);
}

void Config::rename(std::string_view alias, std::string_view name) {
  const json* other = find(alias);
  if (!other) return;
  const json* there = find(name);
  check(!there || there->is_null() || other->is_null() || *there == *other, "config.json: \"", alias, "\" is ",
        Shown{dump(*other)}, " and \"", name, "\" is ", there ? text(Shown{dump(*there)}) : "",
        ", two names for the same value");
  json value = *other;  // a new key may invalidate `other`
  values_.erase(std::string(alias));
  if (!value.is_null()) values_[std::string(name)] = std::move(value);
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

Config Config::part(std::string_view key) const {
  const json* value = find(key);
  check(value && value->is_object(), "config.json: \"", key, "\" is ", value ? dump(*value) : "not there",
        ", expected an object");
  return Config(dump(*value));
}

std::string Config::architecture() const {
  const json* all = find("architectures");
  if (!all || !all->is_array() || all->empty() || !all->front().is_string()) return "";
  return all->front().get<std::string>();
}

const std::vector<std::string>& ConversionRecord::list(const std::string& entry) const {
  static const std::vector<std::string> kNone;
  const auto at = lists.find(entry);
  return at == lists.end() ? kNone : at->second;
}

bool ConversionRecord::names(const std::string& entry, const std::string& name) const {
  return std::ranges::find(list(entry), name) != list(entry).end();
}

ConversionRecord conversion_record(const Config& config) {
  const auto at = config.values().find("isonorm");
  if (at == config.values().end()) return {};
  constexpr const char* kEntries[] = {"version", "form", "fold", "width", "norms", "biases"};
  constexpr const char* kLists[] = {"identity", "recentred", "scales"};  // only in folders that need them
  const auto has = [&](const char* key) { return at->contains(key); };
  const auto is_word = [&](const char* key) {
    return (*at)[key].is_string() && !(*at)[key].get<std::string>().empty();
  };
  const auto is_list = [&](const char* key) {
    return (*at)[key].is_array() && std::ranges::all_of((*at)[key], [](const json& v) { return v.is_string(); });
  };
  const bool whole = at->is_object() && std::ranges::all_of(kEntries, has), rotated = whole && has("rotation");
  const auto more = whole ? std::ranges::count_if(kLists, has) + rotated : 0;
  check(whole && at->size() == std::size(kEntries) + static_cast<size_t>(more) && (*at)["version"] == kVersion &&
            is_word("form") && is_word("fold") && whole_number((*at)["width"]) && (*at)["norms"].is_object() &&
            std::ranges::all_of((*at)["norms"], [](const json& norm) { return norm.is_object(); }) &&
            is_list("biases") && (!rotated || is_word("rotation")) &&
            std::ranges::all_of(kLists, [&](const char* key) { return !has(key) || is_list(key); }),
        "config.json: \"isonorm\" is ", Shown{dump(*at)}, ", expected version ", kVersion,
        ", form, fold, width, norms and biases, or more than these: identity, recentred, scales, rotation");
  ConversionRecord record{(*at)["form"].get<std::string>(),
                          *whole_number((*at)["width"]),
                          (*at)["norms"].get<std::map<std::string, json>>(),
                          (*at)["biases"].get<std::vector<std::string>>(),
                          {},
                          {}};
  for (const char* key : kLists)
    if (has(key)) record.lists[key] = (*at)[key].get<std::vector<std::string>>();
  if (rotated) record.rotation = (*at)["rotation"].get<std::string>();
  const streams::FormRow* form = streams::find_row(record.form);
  check(rotated ? form && form->rotates() && !form->zero_mean_writers() : !form || form->layer_norm_model(),
        "config.json: \"isonorm\" has the form ", Shown{record.form}, rotated ? " and a rotation" : " and no rotation",
        ": uncentred_rms_norm needs a rotation, crms_isometric may have one, no other form has one");
  check(!rotated || !has("recentred"),
        "config.json: \"isonorm\" has both \"rotation\" and \"recentred\", expected at most one: a recentred stream "
        "cannot be rotated by changing weights");
  return record;
}

std::string different(const Config& a, const Config& b) {
  const auto free = [&](const std::string& key) {
    for (const char* part : {"dropout", "pdrop", "layerdrop"})
      if (key.find(part) != key.npos) return true;
    for (const char* whole : {"isonorm", "tie_word_embeddings", "dtype", "torch_dtype", "transformers_version",
                              "_name_or_path", "initializer_range", "use_cache"})
      if (key == whole) return true;
    // It is only the initial value of layer scales. A converted model has no layer scales, and its value is 1.
    const auto drawn = [](const Config& c) {
      return !c.values().contains("isonorm") || c.number("layerscale_value", 1) == 1;
    };
    return key == "layerscale_value" && drawn(a) && drawn(b);
  };
  json all = a.values();
  all.update(b.values());
  ShortList list;
  for (const auto& [key, _] : all.items()) {
    const std::string x = a.text_of(key), y = b.text_of(key);
    if (x != y && !free(key)) list.add(key, ' ', Shown{x.empty() ? "none" : x}, " and ", Shown{y.empty() ? "none" : y});
  }
  return list.str();
}

}  // namespace isonorm::hub
