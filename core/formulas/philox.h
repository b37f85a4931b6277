// Philox4x32-10: a keyed mixing of 128 bits. Random numbers are the images of consecutive counters, so any thread of
// any device can compute any element of any fill on its own.
#pragma once

#include <cstdint>

#include "core/formulas/hd.h"

namespace isonorm {

struct PhiloxBlock {
  uint32_t word[4];
  // 64 bits: half 0 or 1.
  ISO_HD uint64_t wide(int half) const { return word[2 * half] | static_cast<uint64_t>(word[2 * half + 1]) << 32; }
};

inline constexpr int kPhiloxRounds = 10;

// The key of a round. From round to round it advances by the Weyl sequences of the golden ratio and of sqrt(3) - 1.
struct PhiloxKey {
  uint32_t low, high;
  ISO_HD explicit PhiloxKey(uint64_t seed)
      : low(static_cast<uint32_t>(seed)), high(static_cast<uint32_t>(seed >> 32)) {}
  ISO_HD void next() {
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
};

ISO_HD void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, PhiloxKey key) {
  const uint64_t a = uint64_t{0xD2511F53} * c0, b = uint64_t{0xCD9E8D57} * c2;
  c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ key.low;
  c1 = static_cast<uint32_t>(b);
  c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ key.high;
  c3 = static_cast<uint32_t>(a);
}

// The block at `counter` of subsequence `subsequence` under the key `seed` (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", 2011).
ISO_HD PhiloxBlock philox(uint64_t seed, uint64_t counter, uint64_t subsequence = 0) {
  PhiloxBlock b{{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                 static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)}};
  PhiloxKey key(seed);
  for (int round = 0; round < kPhiloxRounds; ++round, key.next())
    philox_round(b.word[0], b.word[1], b.word[2], b.word[3], key);
  return b;
}

// The block and the part of the block for element e of a fill whose blocks serve `parts` elements each. Runs of 64
// elements take the same part of 64 consecutive blocks, so that vector code stores its results side by side.
inline constexpr int64_t kPhiloxLanes = 64;
struct PhiloxPlace {
  uint64_t block;
  int part;
};
ISO_HD PhiloxPlace philox_place(int64_t e, int parts) {
  const int64_t run = e / kPhiloxLanes;
  return {static_cast<uint64_t>(run / parts * kPhiloxLanes + e % kPhiloxLanes), static_cast<int>(run % parts)};
}
// Number of blocks for a fill of n elements.
inline uint64_t philox_blocks(int64_t n, int parts) {
  const int64_t group = kPhiloxLanes * parts;
  return static_cast<uint64_t>(n / group + (n % group != 0)) * kPhiloxLanes;
}

// floor(range b / 2^64), a number in [0, range) from 64 random bits. The probabilities of the values are equal to
// within one part in 2^64 / range.
ISO_HD uint64_t below(uint64_t range, uint64_t b) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(range) * b) >> 64);
}

// 53 random bits as a number in [0, 1).
ISO_HD double unit_interval(uint64_t bits) { return static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53; }

}  // namespace isonorm
