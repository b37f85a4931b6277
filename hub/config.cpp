#include "hub/config.h"

#include "core/error.h"

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

}  // namespace isonorm::hub
