// 64 consecutive Philox blocks at once, side by side so that the rounds run in vector registers.
#pragma once

#include "core/formulas/philox.h"

namespace isonorm {

// word[64 part + k] = word `part` of philox(seed, first + k), k < 64.
ISO_HD void philox_lanes(uint32_t (&word)[4 * kPhiloxLanes], uint64_t seed, uint64_t first) {
  uint32_t *c0 = word, *c1 = c0 + kPhiloxLanes, *c2 = c1 + kPhiloxLanes, *c3 = c2 + kPhiloxLanes;
  for (int64_t k = 0; k < kPhiloxLanes; ++k) {
    const uint64_t counter = first + static_cast<uint64_t>(k);
    c0[k] = static_cast<uint32_t>(counter);
    c1[k] = static_cast<uint32_t>(counter >> 32);
    c2[k] = c3[k] = 0;
  }
  PhiloxKey key(seed);
  for (int round = 0; round < kPhiloxRounds; ++round, key.next()) {
#pragma omp simd
    for (int64_t k = 0; k < kPhiloxLanes; ++k) philox_round(c0[k], c1[k], c2[k], c3[k], key);
  }
}

}  // namespace isonorm
