// A table of results, once as text and once as HTML.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace isonorm::equivalence {

enum class Tone { plain, good, bad };

struct TextCell {
  std::string text;
  Tone tone = Tone::plain;
  std::optional<double> value = {};  // the number behind the text, for a program that reads the table
};

// A cell that shows a measured number.
TextCell number_cell(double value, Tone tone = Tone::plain);

struct TextTable {
  std::string heading;
  std::vector<std::string> columns = {};  // their names; the first column names the row
  std::string caption = {};
  std::vector<std::vector<TextCell>> rows = {};
};

// Aligned columns under a rule, tones coloured where `color`. Widths count characters, not bytes.
std::string to_text(const TextTable& table, bool color);

// Heading, <table> and caption.
std::string to_html(const TextTable& table);

}  // namespace isonorm::equivalence
