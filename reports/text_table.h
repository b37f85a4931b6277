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
  std::optional<double> value = {};   // the number behind the text, for a program that reads the table
  std::optional<double> beside = {};  // a second one
};

// A cell that shows a measured number; one as printf's format has it; one with that of its controls beside it,
// "1.0e-15 / 2.0e-15"; a count; a share of 1 as "12.5 %", with so many decimals.
TextCell number_cell(double value, Tone tone = Tone::plain);
TextCell printed_cell(const char* format, double value, Tone tone = Tone::plain);
TextCell beside_cell(double value, double control);
TextCell count_cell(int64_t count);
TextCell percent_cell(double share, int decimals = 2);

struct TextTable {
  std::string heading;
  std::vector<std::string> columns = {};  // their names, in lines; the first column names the row, the last judges it
  std::string caption = {};
  std::vector<std::vector<TextCell>> rows = {};  // one without cells: a gap between groups of rows
  bool detail = false;                           // folded on a page, left out in a terminal
};

// Aligned columns under a rule, tones coloured where `color`. Widths count characters, not bytes. Where the table is
// wider than `width` (0: there is no limit), it is set compactly: cells in several lines, columns that do not fit in a
// part of their own below (without the rows that are empty there), the last column in the first part, and texts of a
// sentence's length below all as lines "row: text". No line is then longer than `width`, but for a single word that is.
std::string to_text(const TextTable& table, bool color, size_t width = 0);

// The text with line breaks at spaces, so that no line is longer than `width` (0: as it is) but for a single word; all
// lines but the first begin with `indent` spaces.
std::string wrapped(const std::string& s, size_t width, size_t indent = 0);

// Heading, <table> and caption; one with very many columns in parts, below each other. On a narrow page each row is a
// card of its own, with every cell under its column's name.
std::string to_html(const TextTable& table);

std::string to_markdown(const TextTable& table);

}  // namespace isonorm::reports
