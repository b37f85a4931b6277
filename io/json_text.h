// Internal: JSON as all results write it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace isonorm {

using json = nlohmann::ordered_json;  // keys in the order in which they are written here

// Text that is not UTF-8 (a path may be anything) is written with replacement characters instead of being refused.
inline std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

template <class T> json optional(const std::optional<T>& value) { return value ? json(*value) : json(nullptr); }

}  // namespace isonorm
