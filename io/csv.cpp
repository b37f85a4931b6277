#include "io/csv.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/view.h"

namespace isonorm {
namespace {

constexpr int64_t kLongestCsvLine = 1 << 24;  // bytes
constexpr int64_t kCsvPiece = 1 << 20;

using Cells = std::vector<std::string>;

// The lines of a file. The file is read in pieces.
class CsvLines {
 public:
  explicit CsvLines(const Bytes& file) : file_(file) {}

  // The next line without its end; false after the last line.
  bool next(std::string& line) {
    size_t searched = at_, end;
    while ((end = held_.find('\n', searched)) == held_.npos && read_ < file_.size) {
      held_.erase(0, at_);
      at_ = 0, searched = held_.size();
      check(static_cast<int64_t>(searched) < kLongestCsvLine, "csv: line ", number_ + 1, " is over ", kLongestCsvLine,
            " bytes");
      const int64_t n = std::min(kCsvPiece, file_.size - read_);
      held_.resize(searched + static_cast<size_t>(n));
      file_.read(read_, held_.data() + searched, n);
      read_ += n;
    }
    if (at_ >= held_.size()) return false;
    if (end == held_.npos) end = held_.size();
    line = held_.substr(at_, end - at_);
    at_ = end + 1, ++number_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // a byte order mark
    return true;
  }
  int64_t number() const { return number_; }  // number of the current line, from 1

 private:
  const Bytes& file_;
  std::string held_;
  size_t at_ = 0;
  int64_t read_ = 0, number_ = 0;
};

// Removes spaces and tabs at both ends, unless that character is the separator.
std::string_view trimmed(std::string_view s, char separator) {
  const auto is_blank = [&](char c) { return (c == ' ' || c == '\t') && c != separator; };
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

// The cells of a line. A quote in a quoted cell is written twice.
Cells cells_of(std::string_view line, char separator, int64_t number) {
  Cells cells;
  for (bool more = true; more;) {
    std::string cell;
    size_t end;
    const std::string_view rest = trimmed(line, separator);
    if (rest.starts_with('"')) {
      end = static_cast<size_t>(rest.data() - line.data()) + 1;
      for (;; ++end) {
        check(end < line.size(), "csv: line ", number, ", column ", cells.size() + 1, ": the quote does not end");
        if (line[end] == '"' && (end + 1 == line.size() || line[end + 1] != '"')) break;
        if (line[end] == '"') ++end;
        cell += line[end];
      }
      const size_t behind = end + 1;
      end = line.find(separator, behind);
      check(trimmed(line.substr(behind, end - behind), separator).empty(), "csv: line ", number, ", column ",
            cells.size() + 1, ": text after the closing quote");
    } else {
      end = line.find(separator);
      cell = trimmed(line.substr(0, end), separator);
    }
    cells.push_back(std::move(cell));
    more = end != line.npos;
    if (more) line.remove_prefix(end + 1);
  }
  return cells;
}

bool read_cell(std::string_view cell, double& value) {
  value = std::numeric_limits<double>::quiet_NaN();
  if (cell.starts_with('+') && !cell.starts_with("+-")) cell.remove_prefix(1);
  return cell.empty() || read_number(cell, value);
}

// Throws if two columns have the same name. Empty header cells are not names.
void check_names_differ(const Cells& columns) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) continue;
    const auto [first, is_new] = places.emplace(columns[i], i);
    check(is_new, "csv: columns ", first->second + 1, " and ", i + 1, " have the name ", Shown{columns[i]});
  }
}

}  // namespace

Tensor Csv::operator[](const std::string& name) const {
  const auto found = std::ranges::find(columns, name);
  std::string names;
  for (const std::string& column : columns) names += text(names.empty() ? "" : ", ", Shown{column});
  check(found != columns.end(), "csv: there is no column ", Shown{name}, "; the columns are ",
        names.empty() ? "without names" : names);
  return detached::view(detached::narrow(values, 1, static_cast<int>(found - columns.begin()), 1), {values.size(0)});
}

Csv load_csv(const Bytes& file, CsvOptions options) {
  const Scope scope(file.name);
  constexpr std::string_view kOfNumbers = "0123456789+-.\"\r\n";
  check(kOfNumbers.find(options.separator) == kOfNumbers.npos, "csv: ", Shown{std::string(1, options.separator)},
        " cannot separate numbers: give another separator");
  Csv table;
  std::vector<double> values;
  size_t width = 0;
  std::string line;
  for (CsvLines lines(file); lines.next(line);) {
    if (trimmed(line, options.separator).empty()) continue;
    const Cells cells = cells_of(line, options.separator, lines.number());
    const bool is_first = width == 0;
    if (is_first) width = cells.size();
    check(cells.size() == width, "csv: line ", lines.number(), " has ", cells.size(), " cells, the first line ", width);
    const size_t begin = values.size();
    for (size_t i = 0; i < width; ++i) {
      double value;
      if (read_cell(cells[i], value)) {
        values.push_back(value);
        continue;
      }
      check(is_first, "csv: line ", lines.number(), ", column ", i + 1,
            table.columns.empty() ? "" : text(" (", Shown{table.columns[i]}, ')'), ": ", Shown{cells[i]},
            " is no number");
      values.resize(begin);
      check_names_differ(cells);
      table.columns = cells;
      break;
    }
  }
  check(!values.empty(), "csv: there is no row of numbers");
  const auto columns = static_cast<int64_t>(width);
  table.values = from_vector(values, {static_cast<int64_t>(values.size()) / columns, columns});
  return table;
}

Csv load_csv(const std::string& path, CsvOptions options) { return load_csv(open_bytes(path), options); }

}  // namespace isonorm
