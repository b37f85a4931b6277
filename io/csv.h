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

// A file of numbers, one row a line: RFC 4180, lines may end with \n or \r\n, numbers may have spaces around them. The first line is a
// header if one of its cells is neither empty nor a number. Cells may be quoted. Empty lines are skipped.
//
//   const Csv table = load_csv("houses.csv");
//   const Tensor y = table["price"];
//
// Throws (invalid), naming the file, the line and the column, if a cell is no number, if a line has another number of cells than the
// first one, if a quote does not end in its line, if there is no row, and if a line is over 16 MiB.
Csv load_csv(const std::string& path, CsvOptions options = {});
Csv load_csv(const Bytes& file, CsvOptions options = {});

}  // namespace isonorm
