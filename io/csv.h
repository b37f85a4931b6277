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

// Reads a table of numbers (RFC 4180). A line is a row; it ends with \n or \r\n. If a cell of the first line is neither
// empty nor a number, this line is the header. Cells may be quoted. Numbers may have spaces around them. Empty lines
// are skipped.
//
//   const Csv table = load_csv("houses.csv");
//   const Tensor y = table["price"];
//
// Throws (invalid), naming the file, the line and the column, if a cell is no number. Also throws if lines differ in
// their number of cells, two columns have the same name, a quote does not end in its line, text follows a closing
// quote, a line is over 16 MiB, there is no row, or the separator belongs to numbers or ends lines.
Csv load_csv(const std::string& path, CsvOptions options = {});
Csv load_csv(const Bytes& file, CsvOptions options = {});

}  // namespace isonorm
