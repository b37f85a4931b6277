// CsvTable: a table of numbers as a CSV file, with a first column "step" followed by the user's columns.
//
//   training::CsvTable table("run.csv", {"loss", "weight_norm"}, saved.done());
//   table.row(step, {loss, norm});
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "io/line_log.h"

namespace isonorm::training {

// Each row is passed to the system before row() returns. Throws Error (io) if the file cannot be written.
class CsvTable {
 public:
  using Cells = std::vector<std::string>;

  // A file belongs to one training, which has taken `done` steps: rows of later steps are removed. Calls read(cells),
  // if given, for each remaining row; it returns false if the cells are not a valid row. Throws as header(); if the
  // file has other columns or is not a table; if another process is writing it; if done = 0 and the file has rows.
  CsvTable(const std::string& path, const Cells& columns, int64_t done = 0,
           const std::function<bool(const Cells& cells)>& read = {});

  // The first line of the file: "step,loss,weight_norm". Throws if a column's name is empty or has a comma, a quotation
  // mark or a line break.
  static std::string header(const Cells& columns);
  // Reads the header and the rows up to the end, or until take(step, cells) returns false; cells[0] is the step.
  // Returns the number of bytes of the header and the rows taken. Ignores a last line without a line break. Throws if a
  // row has no step or another number of cells.
  static int64_t read(std::istream& file, const Cells& columns,
                      const std::function<bool(int64_t step, const Cells& cells)>& take);

  // Appends a row: a number for each column, written with the fewest digits that give the same double. Throws if the
  // number of values is wrong.
  void row(int64_t step, const std::vector<double>& values);
  // The same with text; an empty cell means that the number is unknown.
  void text_row(int64_t step, const Cells& cells);

 private:
  const size_t columns_;
  io::LineLog file_;
};

}  // namespace isonorm::training
