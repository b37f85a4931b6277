// A checkpoint whose tensors are read or computed on demand, so that only one tensor of a large file is in memory at a
// time.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "core/tensor_map.h"
#include "io/number_format.h"

namespace isonorm {

struct LazyState {
  LazyState() = default;
  LazyState(TensorMap names, std::function<Tensor(const std::string&)> reader)
      : outline(std::move(names)), read(std::move(reader)) {}
  // Wraps tensors that are in memory.
  LazyState(const TensorMap& held) : outline(held), read([held](const std::string& name) { return held.at(name); }) {}

  TensorMap outline;  // name, dtype and shape of every tensor, in order; the elements mean nothing
  std::function<Tensor(const std::string& name)> read;
  std::set<std::string> half = {};  // names of the f32 tensors whose numbers are all F16 (number_format.h)

  NumberFormat format(const std::string& name) const { return {outline.at(name).dtype(), half.contains(name)}; }
};

// A tensor that takes no memory: all its elements are the same zero.
inline Tensor outline(const Dims& shape, DType dtype) {
  Dims strides;
  for (int i = 0; i < shape.rank; ++i) strides.push_back(0);
  const Tensor zero = empty({1}, {dtype});
  visit_all(dtype, [&]<class T>() { *zero.mutable_data<T>() = T(); });
  return as_strided(zero, shape, strides, 0);
}

}  // namespace isonorm
