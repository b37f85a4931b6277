// Internal: how results are written as JSON, and how untrusted JSON is read.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/system/c_numbers.h"

namespace isonorm {

using json = nlohmann::ordered_json;  // keys keep the order of insertion

// Replaces bytes that are not UTF-8 (a path may hold any) by replacement characters instead of refusing them.
inline std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// Maximum depth of JSON that is read. Our logs have three levels. The limit bounds recursion: copying, comparing and
// writing a value recurse once per level.
inline constexpr int kJsonDepth = 32;

// Parses untrusted text. The result is discarded (is_discarded()) if the text is not JSON or is nested deeper than
// kJsonDepth.
inline json parsed(std::string_view text) {
  struct TooDeep {};
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    if (depth > kJsonDepth) throw TooDeep();
    return true;
  };
  const CNumbers in_c_locale;
  try {
    return json::parse(text, shallow, false);
  } catch (const TooDeep&) {
    return json(json::value_t::discarded);
  }
}

// The value as an integer. Empty if it is not a whole number or does not fit int64_t.
inline std::optional<int64_t> whole_number(const json& value) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX)) return {};
  return value.get<int64_t>();
}

template <class T> json optional(const std::optional<T>& value) { return value ? json(*value) : json(nullptr); }

}  // namespace isonorm
