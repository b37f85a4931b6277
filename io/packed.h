// The elements of a tensor as the bytes of a file.
#pragma once

#include <bit>

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

}  // namespace isonorm::io
