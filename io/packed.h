// The elements of a tensor as the bytes of a file.
#pragma once

#include <bit>
#include <cstdint>

#include "core/memory/bytes.h"

namespace isonorm::io {

static_assert(std::endian::native == std::endian::little, "files are little-endian; elements are copied as they are");

// The tensor on the CPU, contiguous and row-major: the tensor itself if it is so already, else a copy.
inline Tensor packed(const Tensor& t) {
  if (t.device() == kCpu && t.is_contiguous()) return t;
  Tensor copy = empty(t.shape(), {t.dtype()});
  copy_into(copy, detach(t));
  return copy;
}

// The number in `bytes` bytes (at most 8), least significant byte first.
inline uint64_t little_endian(const uint8_t* at, int64_t bytes) {
  uint64_t n = 0;
  for (int64_t i = 0; i < bytes; ++i) n |= uint64_t{at[i]} << (8 * i);
  return n;
}

}  // namespace isonorm::io
