#include "io/name_pattern.h"

#include <algorithm>

#include "core/error.h"

namespace isonorm::io {

bool matches(std::string_view pattern, std::string_view name, std::vector<std::string>& stars) {
  const size_t before = stars.size();
  size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  bool fits = name.starts_with(pattern.substr(0, star));
  for (size_t done = star; fits && star != pattern.npos;) {
    name.remove_prefix(done);
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    // What follows the star begins as early as can be: that leaves most to the stars after it. The last ends the name.
    const std::string_view literal = pattern.substr(0, star);
    size_t length = name.find(literal, 1);
    if (star == pattern.npos) length = name.ends_with(literal) ? name.size() - literal.size() : name.npos;
    fits = length != name.npos && length >= 1 && length <= std::min(name.find('.'), name.size());
    if (fits) stars.emplace_back(name.substr(0, length));
    done = length + literal.size();
  }
  if (!fits) stars.resize(before);
  return fits;
}

std::string filled(const std::string& pattern, const std::vector<std::string>& stars) {
  std::string name;
  size_t next = 0;
  for (char c : pattern)
    if (c != '*')
      name += c;
    else
      check(next < stars.size(), "layout: '", pattern, "' has more stars than the name beside it"),
          name += stars[next++];
  return name;
}

}  // namespace isonorm::io
