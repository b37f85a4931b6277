// Limits on names that come from files: names of tensors, patterns for them and keys. All code that walks a name part
// by part, or matches it, relies on these limits.
#pragma once

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm {

inline constexpr int64_t kLongestName = 4096;  // bytes
inline constexpr int64_t kMostNameParts = 64;  // between dots

// Throws, as `what`, if the name is longer or has more parts.
inline void check_name(std::string_view name, std::string_view what) {
  const int64_t parts = std::ranges::count(name, '.') + 1;
  check(std::ssize(name) <= kLongestName, what, ": the name ", Shown{name}, " has ", name.size(),
        " bytes, expected at most ", kLongestName);
  check(parts <= kMostNameParts, what, ": the name ", Shown{name}, " has ", parts, " parts, expected at most ",
        kMostNameParts);
}

}  // namespace isonorm
