#include "tests/support/array.h"

#include <algorithm>

namespace isonorm::test {

Array::Array(const Dims& s, Kind k, double value) : shape(s), kind(k) {
  int64_t n = 1;
  for (int64_t size : s) n *= size;
  v.assign(static_cast<size_t>(n), value);
}

int64_t Array::offset(const Dims& index) const {
  int64_t at = 0;
  for (int d = 0; d < shape.rank; ++d) at = at * shape[d] + index[d];
  return at;
}

double Array::stretched(const Dims& index) const {
  int64_t at = 0;
  for (int d = 0; d < shape.rank; ++d) at = at * shape[d] + (shape[d] == 1 ? 0 : index[index.rank - shape.rank + d]);
  return v[at];
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims out = a.rank > b.rank ? a : b;
  const Dims& small = a.rank > b.rank ? b : a;
  for (int d = 0; d < small.rank; ++d) {
    int64_t& size = out[out.rank - small.rank + d];
    if (size == 1) size = small[d];
  }
  return out;
}

std::string shapes_of(const Arrays& arrays) {
  std::string s;
  for (const Array& a : arrays) {
    if (!s.empty()) s += " x ";
    append_text(s, a.shape);
  }
  return s;
}

}  // namespace isonorm::test
