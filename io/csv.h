// Tables of numbers in text files.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"
#include "core/tensor.h"

namespace isonorm {

struct CsvOptions {
  char separator = ',';
};

struct Csv {
  std::vector<std::string> columns;  // names of the header; empty if there is none
  Tensor values;                     // f64 [rows, columns]; NaN for an empty cell

  // Column `name`, f64 [rows], a view. Throws, listing the names, if there is no such column.
  Tensor operator[](const std::string& name) const;
};

// Reads a table of numbers (RFC 4180). Each line is a row and ends with \n or \r\n. The first line is a header if any
// cell is neither empty nor a number. Cells may be quoted, and numbers may have spaces around them. Empty lines are
// skipped.
//
//   const Csv table = load_csv("houses.csv");
//   const Tensor y = table["price"];
//
// Throws (invalid) if a cell is no number, naming the file, the line and the column. Throws if lines differ in their number of cells, a
// quote does not end in its line, text stands behind a closing quote, a line is over 16 MiB, there is no row, or the separator is part of
// numbers or ends lines.
Csv load_csv(const std::string& path, CsvOptions options = {});
Csv load_csv(const Bytes& file, CsvOptions options = {});

}  // namespace isonorm
