#include "equivalence/name_pattern.h"

#include <algorithm>

#include "core/error.h"

namespace isonorm::equivalence {

bool matches(std::string_view pattern, std::string_view name, std::vector<std::string>& stars) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.size() <= star || name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = name.substr(star);
  const size_t longest = std::min(rest.find('.'), rest.size());
  for (size_t n = 1; n <= longest; ++n) {
    stars.emplace_back(rest.substr(0, n));
    if (matches(pattern.substr(star + 1), rest.substr(n), stars)) return true;
    stars.pop_back();
  }
  return false;
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

}  // namespace isonorm::equivalence
