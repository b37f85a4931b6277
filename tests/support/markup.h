// Checks of the text of pages and drawings.
#pragma once

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace isonorm::test {

inline bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

// True if every element that opens is closed again, in order.
inline bool well_formed(const std::string& markup) {
  static const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator it(markup.begin(), markup.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if (name == "meta" || name == "br" || name == "wbr" || (*it)[3] == "/") continue;
    if ((*it)[1] != "/") {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

namespace detail {

inline std::set<std::string> words(const std::string& s) {
  static const std::regex word("[A-Za-z][A-Za-z0-9_-]*");
  std::set<std::string> found;
  for (std::sregex_iterator it(s.begin(), s.end(), word), end; it != end; ++it) found.insert(it->str());
  return found;
}

// The classes in a selector.
inline std::set<std::string> classes_of(const std::string& selector) {
  static const std::regex name("\\.([A-Za-z][A-Za-z0-9_-]*)");
  std::set<std::string> found;
  for (std::sregex_iterator it(selector.begin(), selector.end(), name), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

}  // namespace detail

// Elements that the page's own style sheet does not style: classes without a rule, and paths and circles that no rule
// gives a colour, so that they are invisible.
inline std::set<std::string> unstyled(const std::string& page) {
  const size_t begin = page.find("<style>"), end = page.find("</style>");
  if (begin == std::string::npos || end == std::string::npos) return {"no style sheet"};
  const std::string style = page.substr(begin + 7, end - begin - 7), body = page.substr(end);
  std::set<std::string> named;
  std::vector<std::set<std::string>> colours;  // sets of classes that give a drawn element a colour
  static const std::regex rule("([^{}]+)\\{([^{}]*)\\}"), colour("(stroke|fill): *var\\(");
  for (std::sregex_iterator it(style.begin(), style.end(), rule), last; it != last; ++it) {
    const std::string selectors = (*it)[1], declarations = (*it)[2];
    const std::set<std::string> classes = detail::classes_of(selectors);
    named.insert(classes.begin(), classes.end());
    if (selectors.find("svg") != std::string::npos && !classes.empty() && std::regex_search(declarations, colour))
      colours.push_back(classes);
  }
  std::set<std::string> problems;
  static const std::regex attribute("class=\"([^\"]*)\""), drawn("<(path|circle) (class=\"([^\"]*)\")?");
  for (std::sregex_iterator it(body.begin(), body.end(), attribute), last; it != last; ++it)
    for (const std::string& name : detail::words((*it)[1]))
      if (!named.contains(name)) problems.insert("no rule for " + name);
  for (std::sregex_iterator it(body.begin(), body.end(), drawn), last; it != last; ++it) {
    const std::set<std::string> has = detail::words((*it)[3]);
    const bool seen = std::any_of(colours.begin(), colours.end(), [&](const std::set<std::string>& wanted) {
      return std::includes(has.begin(), has.end(), wanted.begin(), wanted.end());
    });
    if (!seen) problems.insert("no colour for <" + (*it)[1].str() + " class=\"" + (*it)[3].str() + "\">");
  }
  return problems;
}

}  // namespace isonorm::test
