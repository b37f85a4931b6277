#include "core/system/name_pattern.h"

#include <algorithm>

#include "core/error.h"

namespace isonorm::names {
namespace {

constexpr std::string_view kAny = "**";
using Stars = std::vector<std::string>;

// Matches a pattern without ** against the beginning of `name`, or, if `whole`, against the whole name. Returns the
// number of characters that match; npos if the pattern does not match. Each star takes as few characters as possible,
// which leaves most to the stars after it.
size_t taken(std::string_view pattern, std::string_view name, bool whole, Stars& stars) {
  size_t star = pattern.find('*'), at = pattern.substr(0, star).size();
  if (!name.starts_with(pattern.substr(0, star))) return name.npos;
  while (star != pattern.npos) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    const std::string_view literal = pattern.substr(0, star), rest = name.substr(at);
    size_t length = rest.find(literal, 1);
    if (whole && star == pattern.npos) length = rest.ends_with(literal) ? rest.size() - literal.size() : rest.npos;
    if (length == rest.npos || length < 1 || length > std::min(rest.find('.'), rest.size())) return name.npos;
    stars.emplace_back(rest.substr(0, length));
    at += length + literal.size();
  }
  return whole && at != name.size() ? name.npos : at;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name, Stars& stars) {
  Stars found;
  size_t any = pattern.find(kAny), at = taken(pattern.substr(0, any), name, any == pattern.npos, found);
  while (at != name.npos && any != pattern.npos) {
    pattern.remove_prefix(any + kAny.size());
    any = pattern.find(kAny);
    // The part between this ** and the next one begins, and therefore ends, as early as possible.
    const size_t begin = at, before = found.size();
    at = name.npos;
    for (size_t length = 1; begin + length <= name.size() && at == name.npos; ++length) {
      found.resize(before + 1);
      const size_t more = taken(pattern.substr(0, any), name.substr(begin + length), any == pattern.npos, found);
      if (more != name.npos) found[before] = name.substr(begin, length), at = begin + length + more;
    }
  }
  if (at == name.npos) return false;
  stars.insert(stars.end(), found.begin(), found.end());
  return true;
}

size_t count_stars(std::string_view pattern) {
  size_t count = 0;
  for (size_t at = 0; (at = pattern.find('*', at)) != pattern.npos; ++count)
    at += pattern.substr(at).starts_with(kAny) ? kAny.size() : 1;
  return count;
}

std::string filled(const std::string& pattern, const Stars& stars) {
  check(count_stars(pattern) <= stars.size(), "'", pattern, "' has more stars than the name that fills them");
  std::string name;
  auto star = stars.begin();
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '*') {
      name += pattern[at];
      continue;
    }
    name += *star++;
    at += std::string_view(pattern).substr(at).starts_with(kAny);
  }
  return name;
}

}  // namespace isonorm::names
