// Conversion between dtypes, the same for copies on every device.
#pragma once

#include "core/dtype.h"

namespace isonorm {

// Floating to floating rounds once to nearest even. Floating to integer truncates; i64 to u8 wraps; bf16 to integer is
// float to integer.
template <class To, class From> ISO_HD To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<To, bf16> && std::is_same_v<From, int64_t>) {
    // Beyond 2^53 a double cannot hold v. Its 53 upper bits, with the last one set if digits were lost, still round
    // correctly to bf16 (rounding to odd, see core/dtype.h).
    constexpr int64_t exact = int64_t{1} << 53;
    if (v >= -exact && v <= exact) return bf16(static_cast<double>(v));
    const int64_t upper = v >> 11 | int64_t{(v & 0x7ff) != 0};
    return bf16(static_cast<double>(upper) * 2048);
  } else {
    return static_cast<To>(static_cast<acc_t<From>>(v));
  }
}

}  // namespace isonorm
