// The elements of a tensor as bytes, for any dtype.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// The address of a tensor's first element as bytes, for reading or for writing. The latter raises the storage's
// version.
inline const std::byte* bytes_of(const Tensor& t) {
  return visit_all(t.dtype(), [&]<class T>() { return reinterpret_cast<const std::byte*>(t.data<T>()); });
}
inline std::byte* mutable_bytes_of(const Tensor& t) {
  return visit_all(t.dtype(), [&]<class T>() { return reinterpret_cast<std::byte*>(t.mutable_data<T>()); });
}
inline int64_t byte_size(const Tensor& t) { return t.numel() * size_of(t.dtype()); }

}  // namespace isonorm
