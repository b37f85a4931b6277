#include "reports/text_table.h"

#include <algorithm>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "reports/text_layout.h"

namespace isonorm::reports {
namespace {

constexpr size_t kSentence = 32;  // longer texts go below a compact table
constexpr size_t kName = 22;      // minimum width of the name column, if its names are as long
constexpr size_t kWords = 24;     // longer texts are set as words on a page: left-aligned, in lines
constexpr size_t kWide = 8;       // more columns need a wide page
constexpr size_t kMost = 12;      // more columns need several parts

using Columns = std::vector<size_t>;  // indices of the columns that are shown

// A table during layout.
struct Setting {
  const TextTable& table;
  bool color;
  std::vector<ColumnWidth> widths = std::vector<ColumnWidth>(table.columns.size());

  std::vector<ColumnWidth> widths_of(const Columns& columns) const {
    std::vector<ColumnWidth> found;
    for (size_t c : columns) found.push_back(widths[c]);
    return found;
  }
  size_t least(const Columns& columns) const { return total_width(fitted(widths_of(columns), 0)); }
};

std::string painted(const std::string& s, Tone tone, bool color) {
  if (!color || tone == Tone::plain || s.empty()) return s;
  return text(tone == Tone::good ? "\x1b[32m" : "\x1b[31;1m", s, "\x1b[0m");
}

// A row in columns of these widths. The tallest cell sets the number of lines; cells of a head are aligned to the
// bottom, cells of a body to the top. The first column is left-aligned, with continuation lines indented.
std::string row_text(const std::vector<TextCell>& cells, const std::vector<size_t>& widths, bool head, bool color) {
  std::vector<std::vector<std::string>> lines;
  size_t height = 0;
  for (size_t c = 0; c < cells.size(); ++c) {
    lines.push_back(lines_of(cells[c].text, widths[c]));
    if (c == 0 && !head && lines[0].size() > 1) {
      lines[0] = lines_of(cells[0].text, widths[0] - 2);
      for (size_t i = 1; i < lines[0].size(); ++i) lines[0][i].insert(0, 2, ' ');
    }
    height = std::max(height, lines.back().size());
  }
  std::string out;
  for (size_t i = 0; i < height; ++i) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      const size_t first = head ? height - lines[c].size() : 0;
      const std::string cell = i >= first && i - first < lines[c].size() ? lines[c][i - first] : "";
      const std::string gap(widths[c] - std::min(widths[c], text_length(cell)), ' ');
      const std::string shown = painted(cell, cells[c].tone, color);
      line += c == 0 ? text(shown, gap) : text("  ", gap, shown);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

// Head, rule and rows for some of the columns. Parts below the first leave out rows that are empty there.
std::string part_text(const Setting& s, const Columns& columns, const std::vector<size_t>& widths, bool first) {
  std::vector<TextCell> head;
  for (size_t c : columns) head.push_back({s.table.columns[c]});
  std::string out = row_text(head, widths, true, false) + std::string(total_width(widths), '-') + "\n";
  for (const auto& row : s.table.rows) {
    std::vector<TextCell> cells;
    bool says = first;
    if (!row.empty())
      for (size_t c : columns) cells.push_back(row[c]), says = says || (c > 0 && !row[c].text.empty());
    if (!row.empty() && says) out += row_text(cells, widths, false, s.color);
    if (row.empty() && (first || !(out.ends_with("-\n") || out.ends_with("\n\n")))) out += "\n";
  }
  return out;
}

std::string compact_text(const Setting& s, size_t width) {
  const size_t count = s.table.columns.size();
  Columns below, waiting;
  for (size_t c = 1; c + 1 < count; ++c) (s.widths[c].natural > kSentence ? below : waiting).push_back(c);
  if (count > 1) waiting.push_back(count - 1);

  std::string out;
  for (bool first = true; first || !waiting.empty(); first = false) {
    Columns part = {0};
    if (first && !waiting.empty()) part.push_back(waiting.back()), waiting.pop_back();
    while (!waiting.empty()) {
      Columns more = part;
      more.insert(first ? more.end() - 1 : more.end(), waiting.front());
      if (s.least(more) > width && part.size() > 1) break;
      part = more;
      waiting.erase(waiting.begin());
    }
    out += text(first ? "" : "\n", part_text(s, part, fitted(s.widths_of(part), width), first));
  }
  for (size_t c : below) {
    out += "\n";
    for (const auto& row : s.table.rows)
      if (!row.empty() && !row[c].text.empty()) out += wrapped(text(row[0].text, ": ", row[c].text), width, 2) + "\n";
  }
  return out;
}

// Some columns as a <table>. words: for every column of the table, true if it is set as words.
std::string part_html(const TextTable& table, const Columns& columns, const std::vector<bool>& words) {
  std::string out = text("<table class=\"", columns.size() > kWide ? "cards wide" : "cards", "\">\n<thead><tr>");
  for (size_t c : columns)
    out += text(words[c] ? "<th class=\"words\">" : "<th>", breakable(escaped(table.columns[c])), "</th>");
  out += "</tr></thead>\n";
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].empty()) continue;
    const bool last_of_group = i + 1 < table.rows.size() && table.rows[i + 1].empty();
    out += last_of_group ? "<tr class=\"group\">" : "<tr>";
    for (size_t c : columns) {
      const TextCell& cell = table.rows[i][c];
      std::string css = words[c] ? "words" : "";
      if (cell.tone != Tone::plain) css += text(css.empty() ? "" : " ", cell.tone == Tone::good ? "good" : "bad");
      out +=
          text("<td data-column=\"", escaped(table.columns[c]), "\"", css.empty() ? "" : text(" class=\"", css, "\""),
               ">", words[c] ? breakable(unbroken(cell.text)) : unbroken(cell.text), "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace

TextCell number_cell(double value, Tone tone) { return {scientific(value), tone, value}; }
TextCell printed_cell(const char* format, double value, Tone tone) { return {printed(format, value), tone, value}; }
TextCell beside_cell(double value, double control) {
  return {text(scientific(value), " / ", scientific(control)), Tone::plain, value, control};
}
TextCell count_cell(int64_t count) { return {text(count), Tone::plain, static_cast<double>(count)}; }
TextCell percent_cell(double share, int decimals) {
  return {printed("%.*f %%", decimals, 100 * share), Tone::plain, share};
}

std::string wrapped(const std::string& s, size_t width, size_t indent) {
  if (width == 0 || text_length(s) <= width) return s;
  std::string out;
  for (const std::string& line : lines_of(s, width > indent ? width - indent : width))
    out += text(out.empty() ? "" : text("\n", std::string(indent, ' ')), line);
  return out;
}

std::string to_text(const TextTable& given, bool color, size_t width) {
  TextTable table = given;
  for (auto& row : table.rows)
    for (TextCell& cell : row) cell.text = printable_lines(cell.text);
  Setting s{table, color};
  const auto widen = [&](size_t c, const std::string& cell) { s.widths[c].add(cell); };
  for (size_t c = 0; c < table.columns.size(); ++c) widen(c, table.columns[c]);
  for (const auto& row : table.rows) {
    check(row.empty() || row.size() == table.columns.size(), "table: a row of ", row.size(), " cells under ",
          table.columns.size(), " columns");
    for (size_t c = 0; c < row.size(); ++c) widen(c, row[c].text);
  }
  if (!s.widths.empty()) {
    ColumnWidth& name = s.widths[0];
    name.least = std::min(name.natural, std::max(kName, name.least + 2));
  }
  std::vector<size_t> natural;
  Columns all;
  for (size_t c = 0; c < s.widths.size(); ++c) natural.push_back(s.widths[c].natural), all.push_back(c);
  if (width == 0 || total_width(natural) <= width) return part_text(s, all, natural, true);
  return compact_text(s, width);
}

std::string to_html(const TextTable& table) {
  const size_t count = table.columns.size();
  std::vector<bool> words(count);
  for (const auto& row : table.rows)
    for (size_t c = 1; c < row.size(); ++c) words[c] = words[c] || text_length(row[c].text) > kWords;
  const std::string heading = escaped(table.heading);
  std::string out =
      table.detail ? text("<details><summary>", heading, "</summary>\n") : text("<h2>", heading, "</h2>\n");
  out += "<figure>";
  for (size_t first = 1; first == 1 || first < count; first += kMost - 1) {
    Columns part = {0};
    for (size_t c = first; c < std::min(count, first + kMost - 1); ++c) part.push_back(c);
    out += part_html(table, part, words);
  }
  if (!table.caption.empty()) out += text("<figcaption>", unbroken(table.caption), "</figcaption>");
  return out + (table.detail ? "</figure></details>\n" : "</figure>\n");
}

std::string to_markdown(const TextTable& table) {
  std::string out = "|", rule = "|";
  for (const std::string& name : table.columns) out += text(" ", name, " |"), rule += "---|";
  out += text("\n", rule, "\n");
  for (const auto& row : table.rows) {
    if (row.empty()) continue;
    out += "|";
    for (const TextCell& cell : row) out += text(" ", cell.text, " |");
    out += "\n";
  }
  return out;
}

}  // namespace isonorm::reports
