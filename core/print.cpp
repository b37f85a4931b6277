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

struct Values {
  std::vector<double> v;
  Dims shape;
  bool whole;  // integers
};

// Appends the sub-array at `at` of dimension `dim`; every number padded to `width`, which becomes that of the widest.
void write(std::string& s, const Values& values, int dim, int64_t at, size_t& width) {
  const Dims& shape = values.shape;
  if (dim == shape.rank) {
    const std::string cell = format(values.v[at], values.whole);
    width = std::max(width, cell.size());
    s.append(width - cell.size(), ' ');
    s += cell;
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
    write(s, values, dim + 1, at + i * below, width);
  }
  s += ']';
}

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "(undefined tensor)";
  const Values values{x.to_vector<double>(), x.shape(), !is_floating(x.dtype())};
  std::string s;
  size_t width = 0;
  write(s, values, 0, 0, width);  // to know how wide the numbers are that are shown
  s.clear();
  write(s, values, 0, 0, width);
  return s + text("  ", x.dtype(), ' ', x.shape(), x.device() == kCpu ? std::string() : text(" on ", x.device()));
}

std::ostream& operator<<(std::ostream& os, const Tensor& x) { return os << to_string(x); }

std::ostream& operator<<(std::ostream& os, const Dims& shape) { return os << text(shape); }
std::ostream& operator<<(std::ostream& os, DType dtype) { return os << text(dtype); }
std::ostream& operator<<(std::ostream& os, Device device) { return os << text(device); }

}  // namespace isonorm
