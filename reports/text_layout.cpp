#include "reports/text_layout.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace isonorm::reports {

std::string escaped(std::string_view text) {
  constexpr std::pair<char, const char*> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string result;
  for (char c : text) {
    const auto at = std::ranges::find(kEscapes, c, &std::pair<char, const char*>::first);
    result += at == std::end(kEscapes) ? std::string(1, c) : at->second;
  }
  return result;
}

std::string unbroken(const std::string& s) {
  std::string result = escaped(s);
  for (size_t at = 0; (at = result.find("e-", at)) != std::string::npos; at += 2)
    if (at > 0 && std::isdigit(static_cast<unsigned char>(result[at - 1]))) result.replace(at + 1, 1, "\u2011");
  for (size_t at = 0; (at = result.find(" / ", at)) != std::string::npos; at += 3) result.replace(at, 3, " /\u00a0");
  for (size_t at = 0; (at = result.find(" %", at)) != std::string::npos; at += 2) result.replace(at, 2, "\u00a0%");
  return result;
}

std::string breakable(const std::string& html) {
  std::string result;
  for (char c : html) result += c == '_' ? "_<wbr>" : std::string(1, c);
  return result;
}

size_t text_length(std::string_view s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> words_of(const std::string& s) {
  std::vector<std::string> words;
  constexpr const char* kSpaces = " \t\n\v\f\r";  // a stream would use the locale's spaces
  bool joins = false;                             // the previous word was "/"
  for (size_t at = 0, end = 0; (at = s.find_first_not_of(kSpaces, end)) != s.npos;) {
    end = std::min(s.find_first_of(kSpaces, at), s.size());
    const std::string word = s.substr(at, end - at);
    if (joins || (word == "%" && !words.empty()))
      words.back() += " " + word;
    else
      words.push_back(word);
    joins = word == "/";
  }
  return words;
}

std::vector<std::string> lines_of(const std::string& s, size_t width) {
  std::vector<std::string> lines;
  std::istringstream in(s);
  for (std::string paragraph; std::getline(in, paragraph);) {
    lines.emplace_back();
    for (const std::string& word : words_of(paragraph)) {
      if (!lines.back().empty() && text_length(lines.back()) + 1 + text_length(word) > width) lines.emplace_back();
      lines.back() += (lines.back().empty() ? "" : " ") + word;
    }
  }
  return lines;
}

void ColumnWidth::add(const std::string& cell) {
  std::istringstream in(cell);
  for (std::string line; std::getline(in, line);) natural = std::max(natural, text_length(line));
  for (const std::string& word : words_of(cell)) least = std::max(least, text_length(word));
}

size_t total_width(const std::vector<size_t>& widths) {
  size_t total = 2 * (widths.size() - std::min<size_t>(1, widths.size()));
  for (size_t w : widths) total += w;
  return total;
}

std::vector<size_t> fitted(const std::vector<ColumnWidth>& columns, size_t width) {
  std::vector<size_t> widths;
  for (const ColumnWidth& c : columns) widths.push_back(c.natural);
  while (total_width(widths) > width) {
    size_t* widest = nullptr;
    for (size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > columns[c].least && (!widest || widths[c] > *widest)) widest = &widths[c];
    if (!widest) break;
    --*widest;
  }
  return widths;
}

}  // namespace isonorm::reports
