#include "reports/text_layout.h"

#include <algorithm>
#include <sstream>

namespace isonorm::reports {

size_t text_length(const std::string& s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> words_of(const std::string& s) {
  std::vector<std::string> words;
  std::istringstream in(s);
  bool joins = false;  // a "/" before it
  for (std::string word; in >> word; joins = word == "/") {
    if (joins || (word == "%" && !words.empty()))
      words.back() += " " + word;
    else
      words.push_back(word);
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
