#include "core/print.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

namespace isonorm {
namespace {

constexpr int64_t kEdge = 3;  // entries shown at either end of an elided dimension

std::string format(double v, bool whole) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, whole ? "%.0f" : "%.5g", v);
  return buffer;
}

// Appends the sub-array at `at` of dimension `dim`; every number padded to `width`.
void write(std::string& s, const std::vector<std::string>& cells, const Dims& shape, int dim, int64_t at,
           size_t width) {
  if (dim == shape.rank) {
    s.append(width - cells[at].size(), ' ');
    s += cells[at];
    return;
  }
  int64_t below = 1;
  for (int d = dim + 1; d < shape.rank; ++d) below *= shape[d];
  s += '[';
  for (int64_t i = 0; i < shape[dim]; ++i) {
    if (i) s += dim + 1 == shape.rank ? ", " : ",\n" + std::string(dim + 1, ' ');
    if (shape[dim] > 3 * kEdge && i == kEdge) {
      s += dim + 1 == shape.rank ? "..., " : "...,\n" + std::string(dim + 1, ' ');
      i = shape[dim] - kEdge;
    }
    write(s, cells, shape, dim + 1, at + i * below, width);
  }
  s += ']';
}

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "(undefined tensor)";
  const std::vector<double> values = x.to_vector<double>();
  std::vector<std::string> cells;
  size_t width = 0;
  for (double v : values) {
    cells.push_back(format(v, !is_floating(x.dtype())));
    width = std::max(width, cells.back().size());
  }
  std::string s;
  write(s, cells, x.shape(), 0, 0, width);
  return s + text("  ", x.dtype(), ' ', x.shape(), x.device() == kCpu ? std::string() : text(" on ", x.device()));
}

std::ostream& operator<<(std::ostream& os, const Tensor& x) { return os << to_string(x); }

std::ostream& operator<<(std::ostream& os, const Dims& shape) { return os << text(shape); }
std::ostream& operator<<(std::ostream& os, DType dtype) { return os << text(dtype); }
std::ostream& operator<<(std::ostream& os, Device device) { return os << text(device); }

}  // namespace isonorm
