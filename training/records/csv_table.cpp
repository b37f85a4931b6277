#include "training/records/csv_table.h"

#include <sstream>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "training/records/read_log.h"

namespace isonorm::training {
namespace {

std::string header_of(const CsvTable::Cells& columns) {
  std::string header = "step";
  for (const std::string& name : columns) {
    check(!name.empty() && name.find_first_of(",\"\r\n") == name.npos, "csv: the name of a column is '", name,
          "', expected one without comma, quotation mark and line break");
    header += "," + name;
  }
  return header + "\n";
}

CsvTable::Cells cells_of(const std::string& line) {
  CsvTable::Cells cells;
  std::istringstream in(line + ",");
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

}  // namespace

CsvTable::CsvTable(const std::string& path, const Cells& columns, int64_t done,
                   const std::function<bool(const Cells&)>& read)
    : columns_(columns.size()), file_(path, header_of(columns)) {
  size_t kept = 0;
  read_log(path, [&](std::istream& log) {
    std::string line;
    while (std::getline(log, line)) {
      if (log.eof()) break;  // the line was cut off
      if (kept > 0) {        // a row
        const Cells cells = cells_of(line);
        int64_t step = 0;
        const bool is_row = cells.size() == columns_ + 1 && read_number(cells[0], step);
        check(is_row, "this is no log of a training: ", Shown{line});
        check(done > 0, "has rows of a training; a CSV log is of one: choose another file");
        if (step > done) break;
        check(!read || read(cells), "this is no log of a training: ", Shown{line});
      }
      kept += line.size() + 1;
    }
    log.setstate(std::ios::eofbit);
  });
  file_.keep(static_cast<int64_t>(kept));
  if (kept == 0) file_.write(header_of(columns));
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
