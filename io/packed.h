// The elements of a tensor as the bytes that files hold.
#pragma once

#include <bit>

#include "core/tensor.h"

namespace isonorm::io {

static_assert(std::endian::native == std::endian::little, "files are little-endian; elements are copied as they are");

// The tensor on the CPU in row-major order without gaps: itself where it is that, else a copy.
inline Tensor packed(const Tensor& t) {
  if (t.device() == kCpu && t.is_contiguous()) return t;
  Tensor copy = empty(t.shape(), {t.dtype()});
  copy_into(copy, detach(t));
  return copy;
}

// First byte of a packed tensor.
inline const void* bytes_of(const Tensor& t) {
  return visit_all(t.dtype(), [&]<class T>() -> const void* { return t.data<T>(); });
}
inline void* mutable_bytes_of(const Tensor& t) {
  return visit_all(t.dtype(), [&]<class T>() -> void* { return t.mutable_data<T>(); });
}
inline int64_t byte_size(const Tensor& t) { return t.numel() * size_of(t.dtype()); }

}  // namespace isonorm::io
