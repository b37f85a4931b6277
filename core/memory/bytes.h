// The elements of a tensor as bytes, whatever their dtype.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// The first byte of a tensor's first element, to be read; or to be written to, which raises the storage's version.
inline const std::byte* bytes_of(const Tensor& t) {
  return visit_all(t.dtype(), [&]<class T>() { return reinterpret_cast<const std::byte*>(t.data<T>()); });
}
inline std::byte* mutable_bytes_of(const Tensor& t) {
  return visit_all(t.dtype(), [&]<class T>() { return reinterpret_cast<std::byte*>(t.mutable_data<T>()); });
}
inline int64_t byte_size(const Tensor& t) { return t.numel() * size_of(t.dtype()); }

}  // namespace isonorm
