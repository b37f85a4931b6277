// Converts config.json to options and back.
#include <algorithm>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "exchange/hub/port.h"

namespace isonorm::hub {
namespace {

// The value at the path "a" or "a.b"; null if there is none.
const json* found(const json& values, std::string_view path) {
  if (!values.is_object()) return nullptr;
  const size_t dot = path.find('.');
  const auto at = values.find(path.substr(0, dot));
  if (at == values.end()) return nullptr;
  return dot == path.npos ? &*at : found(*at, path.substr(dot + 1));
}

// The value of the first key that exists. JSON's null is a value if the key has a list of values; otherwise it counts
// as absent. Throws if two keys exist and have different values.
const json* first_found(const Port::Key& key, const json& values) {
  const json* first = nullptr;
  std::string_view name;
  for (std::string_view path : key.keys) {
    const json* value = found(values, path);
    if (!value || (value->is_null() && key.values.empty())) continue;
    if (!first) name = path;
    first = first ? first : value;
    check(*first == *value, "config.json: \"", name, "\" is ", Shown{dump(*first)}, " and \"", path, "\" is ",
          Shown{dump(*value)}, ", two names for the same value");
  }
  return first;
}

// The value as a word: "gelu", "12", "true"; for an object its number of entries (id2label).
std::string word_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_object() ? text(value.size()) : dump(value);
}

// The value of our option. Throws if theirs has no counterpart.
std::string ours_of(const Port::Key& key, const json* value) {
  const std::string word = value ? word_of(*value) : std::string(key.otherwise);
  check(!word.empty(), "config.json: there is no \"", key.keys.back(), "\"");
  if (key.values.empty()) return word;
  std::string known;
  for (const Port::Value& v : key.values) {
    if (v.theirs == word) return std::string(v.ours);
    known += text(known.empty() ? "" : ", ", v.theirs);
  }
  check(false, "config.json: \"", key.keys.back(), "\" is ", Shown{value ? dump(*value) : word},
        ", which has no counterpart in our models, expected ", known);
  return {};
}

// A word as JSON: 12, true, "gelu".
json json_of(std::string_view word) {
  const json value = parsed(word);
  return value.is_discarded() ? json(word) : value;
}

// The object that has, or would have, the last key of the path "a" or "a.b"; null if there is no such object.
json* folder_of(json& values, std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == path.npos) return &values;
  const auto at = values.find(path.substr(0, dot));
  return at != values.end() && at->is_object() ? &*at : nullptr;
}

std::string last_of(std::string_view path) { return std::string(path.substr(path.find('.') + 1)); }

}  // namespace

const Port& port_named(std::string_view type) {
  std::string all;
  for (const Port& p : ports()) {
    if (p.type == type) return p;
    all += text(all.empty() ? "" : ", ", p.type);
  }
  check(false, "config.json: \"model_type\" is ", Shown{type}, ", types that can be imported are ", all);
  return ports().front();
}

std::vector<PortOption> port_options(const Port& port, const Config& config) {
  const std::string architecture = config.architecture();
  check(architecture == port.architecture, "config.json: the architecture is ", Shown{architecture}, ", expected ",
        port.architecture, " for type '", port.type, "'");
  check(config.text_of("quantization_config").empty(),
        "config.json: \"quantization_config\" is set: the weights are not simply the tensors of model.safetensors");
  check(!config.own_code(), "config.json names code of its own (auto_map), which may compute something else");
  check(config.flag("is_causal", true),
        "config.json: \"is_causal\" is 'false': every token attends to all others, expected true");
  const std::string rotation = conversion_record(config).rotation;
  check(rotation.empty(), "config.json: the stream is rotated (", Shown{rotation}, "), which a model of type '",
        port.type, "' does not compute; import the folder that isonorm rotate began with");
  check(config.text_of("per_layer_config").empty(), "config.json: \"per_layer_config\" is set: blocks differ");
  if (const json* types = found(config.values(), "layer_types"))
    for (const json& type : *types)
      check(type == "full_attention", "config.json: \"layer_types\" has ", Shown{dump(type)},
            ", expected \"full_attention\": every token attends to all before it");
  if (const json* rotary = found(config.values(), "rope_parameters"))
    for (const json& value : *rotary)
      check(!value.is_object(), "config.json: \"rope_parameters\" has ", Shown{dump(value)},
            " for some blocks only, expected the same for all");
  std::vector<PortOption> options;
  for (const Port::Fixed& f : port.fixed) options.push_back({std::string(f.option), std::string(f.value), ""});
  for (const Port::Key& key : port.keys) {
    const std::string value = ours_of(key, first_found(key, config.values()));
    if (!key.option.empty()) options.push_back({std::string(key.option), value, std::string(key.keys.back())});
  }
  return options;
}

std::vector<std::string> class_names(const Config& config) {
  const json* labels = found(config.values(), "id2label");
  if (!labels || labels->is_null()) return {};
  check(labels->is_object(), "config.json: \"id2label\" is ", Shown{dump(*labels)}, ", expected an object");
  std::vector<std::string> names;
  bool own = false;
  for (size_t i = 0; i < labels->size(); ++i) {
    const auto name = labels->find(text(i));
    check(name != labels->end() && name->is_string(), "config.json: \"id2label\" has ", labels->size(),
          " entries, and no name of class ", i);
    names.push_back(name->get<std::string>());
    own = own || names.back() != text("LABEL_", i);
  }
  return own ? names : std::vector<std::string>();
}

void set_class_names(json& config, const std::vector<std::string>& names) {
  json labels = json::object(), ids = json::object();
  for (size_t i = 0; i < names.size(); ++i) labels[text(i)] = names[i], ids[names[i]] = i;
  config["id2label"] = std::move(labels), config["label2id"] = std::move(ids);
}

json exported_config(const Port& port, json base, const Metadata& options) {
  base["architectures"] = {port.architecture}, base["model_type"] = port.type;
  // `base` may be another model's, with an attention type for each block. Without the entry every block attends to all
  // tokens before.
  base.erase("layer_types");
  for (const Port::Key& key : port.keys) {
    const json* there = first_found(key, base);
    const std::string word = there ? word_of(*there) : std::string(key.otherwise);
    const std::string ours = key.option.empty() ? "" : options.at(text("model.", key.option));
    const auto theirs = std::ranges::find(key.values, word, &Port::Value::theirs);
    const bool says = theirs != key.values.end() ? theirs->ours == ours : json_of(word) == json_of(ours);
    if (says && (there || key.option.empty())) continue;
    const auto value = std::ranges::find(key.values, ours, &Port::Value::ours);
    check(key.values.empty() || value != key.values.end(), key.option, " is ", ours, ", which a model of type '",
          port.type, "' has no counterpart for");
    for (std::string_view path : key.keys)
      if (json* in = folder_of(base, path)) in->erase(last_of(path));
    if (json* in = folder_of(base, key.keys.back()))
      (*in)[last_of(key.keys.back())] = json_of(value == key.values.end() ? std::string_view(ours) : value->theirs);
  }
  return base;
}

}  // namespace isonorm::hub
