// A table of results, as text, as HTML and as Markdown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace isonorm::reports {

enum class Tone { plain, good, bad };

struct TextCell {
  std::string text;
  Tone tone = Tone::plain;
  std::optional<double> value = {};   // the number that the text shows, for programs
  std::optional<double> beside = {};  // a second number
};

// Cells with a number: in scientific form; in printf's format; with the number of its control, "1.0e-15 / 2.0e-15"; a
// count; and a share of 1 as "12.5 %", with this number of decimals.
TextCell number_cell(double value, Tone tone = Tone::plain);
TextCell printed_cell(const char* format, double value, Tone tone = Tone::plain);
TextCell beside_cell(double value, double control);
TextCell count_cell(int64_t count);
TextCell percent_cell(double share, int decimals = 2);

struct TextTable {
  std::string heading;
  std::vector<std::string> columns = {};  // their names; the first column names the row, the last one judges it
  std::string caption = {};
  std::vector<std::vector<TextCell>> rows = {};  // a row without cells is a gap between groups
  bool detail = false;                           // folded on a page, left out in a terminal
};

// Aligned columns under a rule; `color`: coloured by tone. Widths count characters, not bytes. If the table is wider
// than `width` (0: no limit), it is made compact: cells take several lines; columns that do not fit form further parts
// below (without rows that are empty there), but the last column stays in the first part; and columns of sentences
// follow as lines "row: text". No line is then longer than `width`, except for a single longer word.
std::string to_text(const TextTable& table, bool color, size_t width = 0);

// Breaks the text at spaces into lines of at most `width` (0: unchanged), except for a single longer word. All lines
// but the first are indented by `indent` spaces.
std::string wrapped(const std::string& s, size_t width, size_t indent = 0);

// Heading, <table> and caption. A table with very many columns is divided into parts, one below the other. On a narrow
// page each row becomes a card, with every cell under its column's name.
std::string to_html(const TextTable& table);

std::string to_markdown(const TextTable& table);

}  // namespace isonorm::reports
