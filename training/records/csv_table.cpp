#include "training/records/csv_table.h"

#include <sstream>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/foreign_text.h"
#include "training/records/read_log.h"

namespace isonorm::training {
namespace {

CsvTable::Cells cells_of(const std::string& line) {
  CsvTable::Cells cells;
  std::istringstream in(line + ",");
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

void check_row(bool is_row, const std::string& line) {
  check(is_row, "this is not a training log: '", printable(line, 80), "'");
}

}  // namespace

std::string CsvTable::header(const Cells& columns) {
  std::string header = "step";
  for (const std::string& name : columns) {
    check(!name.empty() && name.find_first_of(",\"\r\n") == name.npos, "csv: the name of a column is '", name,
          "', expected one without comma, quotation mark and line break");
    header += "," + name;
  }
  return header + "\n";
}

int64_t CsvTable::read(std::istream& file, const Cells& columns,
                       const std::function<bool(int64_t step, const Cells& cells)>& take) {
  int64_t bytes = 0;
  for (std::string line; next_line(file, line) && !file.eof();) {  // else the line was cut off
    if (bytes > 0) {
      const Cells cells = cells_of(line);
      int64_t step = 0;
      check_row(cells.size() == columns.size() + 1 && read_number(cells[0], step), line);
      if (!take(step, cells)) break;
    }
    bytes += std::ssize(line) + 1;
  }
  return bytes;
}

CsvTable::CsvTable(const std::string& path, const Cells& columns, int64_t done,
                   const std::function<bool(const Cells&)>& read_row)
    : columns_(columns.size()), file_(path, header(columns)) {
  int64_t kept = 0;
  read_log(path, [&](std::istream& log) {
    kept = read(log, columns, [&](int64_t step, const Cells& cells) {
      check(done > 0, "has rows of a training; a CSV log is for one training: choose another file");
      if (step > done) return false;
      check(!read_row || read_row(cells), "this is not a training log: its row for step ", step, " cannot be read");
      return true;
    });
    log.setstate(std::ios::eofbit);
  });
  file_.keep(kept);
  if (kept == 0) file_.write(header(columns));
}

void CsvTable::row(int64_t step, const std::vector<double>& values) {
  Cells cells;
  for (const double value : values) cells.push_back(shortest(value));
  text_row(step, cells);
}

void CsvTable::text_row(int64_t step, const Cells& cells) {
  check(cells.size() == columns_, "csv: a row of ", cells.size(), " cells, expected ", columns_);
  std::string line = text(step);
  for (const std::string& cell : cells) line += "," + cell;
  file_.write(line + "\n");
}

}  // namespace isonorm::training
