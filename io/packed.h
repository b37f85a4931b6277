// The elements of a tensor as the bytes that files hold.
#pragma once

#include <bit>

#include "core/memory/bytes.h"

namespace isonorm::io {

static_assert(std::endian::native == std::endian::little, "files are little-endian; elements are copied as they are");

// The tensor on the CPU in row-major order without gaps: itself where it is that, else a copy.
inline Tensor packed(const Tensor& t) {
  if (t.device() == kCpu && t.is_contiguous()) return t;
  Tensor copy = empty(t.shape(), {t.dtype()});
  copy_into(copy, detach(t));
  return copy;
}

}  // namespace isonorm::io
