// Array: the plain double-precision array in which samples are stated and naive references compute. Independent of
// Tensor's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm::test {

enum class Kind { real, index, mask };  // a floating tensor, an i64 one, a u8 one

struct Array {
  Dims shape;
  std::vector<double> v;  // row-major
  Kind kind = Kind::real;
  std::optional<DType> dtype = {};  // fixed, whatever dtype a test runs in

  Array() = default;
  explicit Array(const Dims& s, Kind k = Kind::real, double value = 0);
  int64_t size() const { return static_cast<int64_t>(v.size()); }
  int64_t offset(const Dims& index) const;
  double at(const Dims& index) const { return v[offset(index)]; }
  double& at(const Dims& index) { return v[offset(index)]; }
  // Entry of the array broadcast to a shape in which `index` is a place: trailing dimensions align, size 1 stretches.
  double stretched(const Dims& index) const;
};

using Arrays = std::vector<Array>;
using Tensors = std::vector<Tensor>;

// Calls f(index) for every place of `shape` in row-major order.
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

// The array whose entry at `index` is f(index).
template <class F> Array tabulate(const Dims& shape, F f, Kind kind = Kind::real) {
  Array a(shape, kind);
  size_t i = 0;
  for_each_index(shape, [&](const Dims& index) { a.v[i++] = f(index); });
  return a;
}

// Shapes of two operands broadcast together.
Dims broadcast(const Dims& a, const Dims& b);

// "[2, 3] x [3]": the shapes of a sample.
std::string shapes_of(const Arrays& arrays);

}  // namespace isonorm::test
