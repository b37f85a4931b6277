// Array: a plain double-precision array for samples and naive references. Independent of Tensor's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm::test {

enum class Kind { real, index, mask };  // floating-point, i64, u8

struct Array {
  Dims shape;
  std::vector<double> v;  // row-major
  Kind kind = Kind::real;
  std::optional<DType> dtype = {};  // a fixed dtype, whatever dtype the test runs in

  Array() = default;
  explicit Array(const Dims& s, Kind k = Kind::real, double value = 0);
  int64_t size() const { return static_cast<int64_t>(v.size()); }
  int64_t offset(const Dims& index) const;
  double at(const Dims& index) const { return v[offset(index)]; }
  double& at(const Dims& index) { return v[offset(index)]; }
  // The entry at `index` after broadcasting to a larger shape: trailing dimensions align, size 1 stretches.
  double stretched(const Dims& index) const;
};

using Arrays = std::vector<Array>;
using Tensors = std::vector<Tensor>;

// Calls f(index) for every index of `shape` in row-major order.
template <class F> void for_each_index(const Dims& shape, F f) {
  Dims index = shape;
  for (int d = 0; d < shape.rank; ++d) {
    index[d] = 0;
    if (shape[d] == 0) return;
  }
  while (true) {
    f(static_cast<const Dims&>(index));
    int d = shape.rank - 1;
    for (; d >= 0; --d) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// The array with entry f(index) at `index`.
template <class F> Array tabulate(const Dims& shape, F f, Kind kind = Kind::real) {
  Array a(shape, kind);
  size_t i = 0;
  for_each_index(shape, [&](const Dims& index) { a.v[i++] = f(index); });
  return a;
}

// The shape of two operands broadcast together.
Dims broadcast(const Dims& a, const Dims& b);

// The shapes of a sample, as in "[2, 3] x [3]".
std::string shapes_of(const Arrays& arrays);

}  // namespace isonorm::test
