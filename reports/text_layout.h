// Text of reports: as HTML, and on lines of limited width, which the words of a cell and the widths of columns make.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isonorm::reports {

// The text with &, <, > and quotes replaced, fit for HTML and SVG.
std::string escaped(std::string_view text);

// Escaped, with the hyphen of "1.4e-13" and the spaces of "/ 1.4e-13" and "3 %" made ones that no line breaks at.
std::string unbroken(const std::string& s);

// HTML in which a long name may be broken behind each of its underscores.
std::string breakable(const std::string& html);

// Characters of UTF-8 text.
size_t text_length(std::string_view s);

// What stays on one line; "/ 1.2e-15" and "3 %" are one word.
std::vector<std::string> words_of(const std::string& s);

// Lines of at most `width` characters, but for a single word; line breaks of the text are kept.
std::vector<std::string> lines_of(const std::string& s, size_t width);

// A column's width where every cell is on one line, and where every word is.
struct ColumnWidth {
  size_t natural = 0, least = 0;
  void add(const std::string& cell);
};

// Widths that with gaps of two make at most `width` where the least ones do: the widest is narrowed first.
std::vector<size_t> fitted(const std::vector<ColumnWidth>& columns, size_t width);

// Of all columns with a gap of two between them.
size_t total_width(const std::vector<size_t>& widths);

}  // namespace isonorm::reports
