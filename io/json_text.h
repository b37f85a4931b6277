// Internal: JSON as all results write it, and as what comes from outside is read.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/system/c_numbers.h"

namespace isonorm {

using json = nlohmann::ordered_json;  // keys in the order in which they are written here

// Text that is not UTF-8 (a path may be anything) is written with replacement characters instead of being refused.
inline std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// Deepest JSON that is read; a log's own has three levels. What copies, compares or writes a value calls itself once a
// level.
inline constexpr int kJsonDepth = 32;

// The value that a text from outside holds; discarded (is_discarded()) where it is no JSON or deeper than kJsonDepth.
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

// The whole number that a value from outside is; nothing if it is another value or beyond int64_t.
inline std::optional<int64_t> whole_number(const json& value) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX)) return {};
  return value.get<int64_t>();
}

template <class T> json optional(const std::optional<T>& value) { return value ? json(*value) : json(nullptr); }

}  // namespace isonorm
