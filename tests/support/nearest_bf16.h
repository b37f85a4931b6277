// Rounding to bf16 by its definition, independent of the library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace isonorm::test {

// The bf16 nearest to v; of two equally near the even one. Searches the neighbours of v truncated.
inline float nearest_bf16(long double v) {
  const float start = static_cast<float>(v);
  const uint32_t bits = std::bit_cast<uint32_t>(start) & 0xffff0000u;
  float best = std::bit_cast<float>(bits);
  for (const uint32_t candidate : {bits - 0x10000u, bits + 0x10000u}) {
    const float c = std::bit_cast<float>(candidate);
    const long double gap = std::abs(c - v), least = std::abs(best - v);
    if (gap < least || (gap == least && (candidate & 0x10000u) == 0)) best = c;
  }
  return best;
}

}  // namespace isonorm::test
