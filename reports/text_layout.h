// Text of reports: escaped for HTML, and broken into lines and columns of limited width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isonorm::reports {

// The text with &, <, > and quotes replaced, fit for HTML and SVG.
std::string escaped(std::string_view text);

// Escaped, with the hyphen of "1.4e-13" and the spaces of "/ 1.4e-13" and "3 %" made unbreakable.
std::string unbroken(const std::string& s);

// HTML that lets a long name be broken after each underscore.
std::string breakable(const std::string& html);

// Characters of UTF-8 text.
size_t text_length(std::string_view s);

// Words, the units of line breaking; "/ 1.2e-15" and "3 %" are one word.
std::vector<std::string> words_of(const std::string& s);

// Lines of at most `width` characters (a longer word gets a line of its own). Line breaks of the text are kept.
std::vector<std::string> lines_of(const std::string& s, size_t width);

// The width of a column if no cell is broken (natural), and the width of its longest word (least).
struct ColumnWidth {
  size_t natural = 0, least = 0;
  void add(const std::string& cell);
};

// Column widths that make at most `width` together with gaps of two, if the least widths allow it. The widest column is
// narrowed first.
std::vector<size_t> fitted(const std::vector<ColumnWidth>& columns, size_t width);

// The columns' total width, with a gap of two between them.
size_t total_width(const std::vector<size_t>& widths);

}  // namespace isonorm::reports
