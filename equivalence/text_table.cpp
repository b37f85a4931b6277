#include "equivalence/text_table.h"

#include <algorithm>

#include "core/error.h"
#include "equivalence/report_page.h"
#include "equivalence/summary.h"
#include "equivalence/svg.h"

namespace isonorm::equivalence {
namespace {

// Characters of UTF-8 text.
size_t length(const std::string& s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string painted(const TextCell& cell, bool color) {
  if (!color || cell.tone == Tone::plain) return cell.text;
  return text(cell.tone == Tone::good ? "\x1b[32m" : "\x1b[31;1m", cell.text, "\x1b[0m");
}

}  // namespace

TextCell number_cell(double value, Tone tone) { return {scientific(value), tone, value}; }

std::string to_text(const TextTable& table, bool color) {
  std::vector<TextCell> head;
  for (const std::string& column : table.columns) head.push_back({column});
  std::vector<size_t> width(head.size());
  const auto widen = [&](const std::vector<TextCell>& row) {
    check(row.size() == head.size(), "table: a row of ", row.size(), " cells under ", head.size(), " columns");
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], length(row[c].text));
  };
  widen(head);
  for (const auto& row : table.rows) widen(row);

  std::string out;
  const auto append = [&](const std::vector<TextCell>& row) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string gap(width[c] - length(row[c].text), ' '), cell = painted(row[c], color);
      line += c == 0 ? cell + gap : "  " + gap + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  append(head);
  size_t total = 2 * (width.size() - std::min<size_t>(1, width.size()));
  for (size_t w : width) total += w;
  out += std::string(total, '-') + "\n";
  for (const auto& row : table.rows) append(row);
  return out;
}

std::string to_html(const TextTable& table) {
  std::string out = text("<h2>", escaped(table.heading), "</h2>\n<figure><div class=\"scroll\"><table>\n<tr>");
  for (const std::string& column : table.columns) out += text("<th>", escaped(column), "</th>");
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const TextCell& cell : row) {
      const char* css = cell.tone == Tone::good ? " class=\"good\"" : cell.tone == Tone::bad ? " class=\"bad\"" : "";
      out += text("<td", css, ">", unbroken(cell.text), "</td>");
    }
    out += "</tr>\n";
  }
  out += "</table></div>\n";
  if (!table.caption.empty()) out += text("<figcaption>", unbroken(table.caption), "</figcaption>");
  return out + "</figure>\n";
}

}  // namespace isonorm::equivalence
