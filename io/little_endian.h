// Internal: numbers in files.
#pragma once

#include <cstdint>

namespace isonorm::io {

// The number in `bytes` bytes (at most 8), least significant byte first.
inline uint64_t little_endian(const uint8_t* at, int64_t bytes) {
  uint64_t n = 0;
  for (int64_t i = 0; i < bytes; ++i) n |= uint64_t{at[i]} << (8 * i);
  return n;
}

}  // namespace isonorm::io
