// Patterns of tensor names: `*` matches one or more characters other than '.', `**` one or more of any character.
// "blocks.*.norm" is the norm of each block and nothing deeper, "**.bias" is every bias inside a module.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::names {

// Returns true if `name` matches `pattern`, and appends to `stars` the text of each star. From the left, each star is
// as short as possible. Takes time proportional to the product of the lengths of pattern and name; with `**`, times the
// length of the name once more.
bool matches(std::string_view pattern, std::string_view name, std::vector<std::string>& stars);

// The number of stars in a pattern; ** counts as one.
size_t count_stars(std::string_view pattern);

// The pattern with its stars, of either kind, replaced in order. Throws if it has more stars than `stars` has texts.
std::string filled(const std::string& pattern, const std::vector<std::string>& stars);

}  // namespace isonorm::names

namespace isonorm {

// Limits on names that come from files: names of tensors, patterns for them and keys. All code that walks a name part
// by part, or matches it, relies on these limits.
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
