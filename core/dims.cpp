#include "core/dims.h"

#include <algorithm>

namespace isonorm {

void append_text(std::string& s, const Dims& d) {
  s += '[';
  for (int i = 0; i < d.rank; ++i) {
    if (i) s += ", ";
    append_text(s, d.v[i]);
  }
  s += ']';
}

int64_t Dims::from_end(int64_t i) const {
  check(i >= -rank && i < 0, "shape: index ", i, " is out of range for ", *this);
  return i + rank;
}

int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  int64_t r;
  check(!__builtin_mul_overflow(a, b, &r), what, ": ", a, " x ", b, " passes the largest size");
  return r;
}

int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t r;
  check(!__builtin_add_overflow(a, b, &r), what, ": ", a, " + ", b, " passes the largest size");
  return r;
}

int64_t numel(const Dims& shape, const char* op) {
  bool empty = false;
  for (int64_t s : shape) {
    check(s >= 0, op, ": size ", s, " is negative in ", shape);
    empty |= s == 0;
  }
  if (empty) return 0;  // the other sizes may be huge, so their product is not computed
  int64_t n = 1;
  for (int64_t s : shape) n = checked_mul(n, s, op);
  return n;
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides;
  strides.rank = shape.rank;
  uint64_t step = 1;  // unsigned, because in an empty tensor it may overflow int64 before it is multiplied by the 0
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides.v[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(shape.v[i]);
  }
  if (step == 0) std::fill_n(strides.v, shape.rank, 0);  // an empty tensor has no elements to address
  return strides;
}

int normalize_dim(int dim, int rank, const char* op) {
  check(dim >= -rank && dim < rank, op, ": dimension ", dim, " is out of range for rank ", rank);
  return dim < 0 ? dim + rank : dim;
}

int64_t normalize_index(int64_t i, int64_t size, const char* what) {
  check(i >= -size && i < size, what, ": index ", i, " is out of range for ", size, size == 1 ? " entry" : " entries");
  return i < 0 ? i + size : i;
}

Dims broadcast_shapes(const Dims& a, const Dims& b, const char* op) {
  if (a == b) return a;
  Dims out;
  out.rank = std::max(a.rank, b.rank);
  for (int i = 0; i < out.rank; ++i) {
    const int ia = i - (out.rank - a.rank), ib = i - (out.rank - b.rank);
    const int64_t sa = ia < 0 ? 1 : a.v[ia], sb = ib < 0 ? 1 : b.v[ib];
    check(sa == sb || sa == 1 || sb == 1, op, ": shapes ", a, " and ", b, " do not broadcast: sizes ", sa, " and ", sb,
          " differ");
    out.v[i] = sa == 1 ? sb : sa;
  }
  return out;
}

}  // namespace isonorm
