// What tests of pages and drawings ask of their text.
#pragma once

#include <regex>
#include <string>
#include <vector>

namespace isonorm::test {

inline bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

// Every element that opens closes again, in order.
inline bool well_formed(const std::string& markup) {
  static const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator it(markup.begin(), markup.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if (name == "meta" || name == "br" || (*it)[3] == "/") continue;
    if ((*it)[1] != "/") {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

}  // namespace isonorm::test
