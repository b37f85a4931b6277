// Division and multiples, rounded up.
#pragma once

#include <cstdint>

#include "core/formulas/hd.h"

namespace isonorm {

// The least q with q d >= n; n >= 0, d > 0.
ISO_HD constexpr int64_t ceil_div(int64_t n, int64_t d) { return n / d + (n % d != 0); }
// The least multiple of `unit` that is >= n.
ISO_HD constexpr int64_t round_up(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }

}  // namespace isonorm
