// Bytes of the tensors in an argument of a kernel, for the profile. A struct of tensors declares an overload of its
// own.
#pragma once

#include <span>

#include "core/tensor.h"

namespace isonorm {

// Of the elements that the tensor refers to: one that is broadcast counts once. 0 where undefined.
int64_t tensor_bytes(const Tensor& x);

template <class T> int64_t tensor_bytes(const T&) { return 0; }  // numbers and sizes
template <class T> int64_t tensor_bytes(std::span<const T> list) {
  int64_t bytes = 0;
  for (const T& item : list) bytes += tensor_bytes(item);
  return bytes;
}

inline int64_t bytes_of_all(const auto&... arguments) { return (int64_t{0} + ... + tensor_bytes(arguments)); }

}  // namespace isonorm
