// Host versions of gpu/tensor_core.cuh. Lanes exchange their operands and pick elements by the documented layout of
// fragments. A copy fills its destination with ones (NaN) when it begins and is done when it is waited for. So both a
// reader that did not wait and a late reader of the old contents see NaN.
#pragma once

#include "core/dtype.h"
#include "tests/emulated_gpu/copies.h"
#include "tests/emulated_gpu/device.h"

namespace isonorm::gpu {

struct Quad {
  uint32_t r[4];
};

namespace emulated {

// These act for the calling thread. Defined in block_run.cpp.
bool is_shared(const void* p, size_t bytes);
void begin_copy(const Copy& copy);
void commit_copies();
bool take_copy(uint32_t groups_left, Copy& copy);  // takes the oldest copy that must be done; false: none

inline void check_row(const char* what, const void* p, Place place) {
  if (reinterpret_cast<uintptr_t>(p) % 16) fault(what, "the address is not a multiple of 16", place);
  if (!is_shared(p, 16)) fault(what, "the address is not in shared memory", place);
}
inline float half_of(uint32_t word, int k) { return std::bit_cast<float>(k % 2 ? word & 0xffff0000u : word << 16); }

template <class Pick> Quad load_four(const char* what, const void* row, Pick pick, Place place) {
  check_row(what, row, place);
  std::byte mine[16];
  std::memcpy(mine, row, 16);
  const Slot* slots = meet(what, ~0u, mine, 16, place);
  const auto at = [&](int matrix, int r, int c) {  // an element
    uint16_t v;
    __builtin_memcpy(&v, slots[8 * matrix + r].bytes + 2 * c, 2);
    return uint32_t{v};
  };
  Quad m;
  for (int i = 0; i < 4; ++i) m.r[i] = pick(i, lane_id() / 4, lane_id() % 4, at);
  return m;
}
}  // namespace emulated

inline void multiply_add(float (&c)[4], const Quad& a, uint32_t b0, uint32_t b1,
                         emulated::Place place = emulated::Place::here()) {
  struct Operands {
    uint32_t a[4], b[2];
  };
  const Operands mine{{a.r[0], a.r[1], a.r[2], a.r[3]}, {b0, b1}};
  const emulated::Slot* slots = emulated::meet("mma", ~0u, &mine, sizeof(mine), place);
  const int g = emulated::lane_id() / 4, t = emulated::lane_id() % 4;
  float rows[2][16], columns[2][16];  // rows g and g + 8 of a, columns 2 t and 2 t + 1 of b
  for (int of = 0; of < 4; ++of) {    // the lane with elements 2 of, 2 of + 1, and the same + 8
    const auto left = emulated::taken<Operands>(slots, 4 * g + of);
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 2; ++k) rows[i % 2][2 * of + i / 2 * 8 + k] = emulated::half_of(left.a[i], k);
    for (int n = 0; n < 2; ++n) {
      const auto right = emulated::taken<Operands>(slots, 4 * (2 * t + n) + of);
      for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 2; ++k) columns[n][2 * of + i * 8 + k] = emulated::half_of(right.b[i], k);
    }
  }
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) c[i] += rows[i / 2][k] * columns[i % 2][k];
}

inline Quad load_matrices(const void* row, emulated::Place place = emulated::Place::here()) {
  const auto pick = [](int i, int g, int t, auto at) { return at(i, g, 2 * t) | at(i, g, 2 * t + 1) << 16; };
  return emulated::load_four("ldmatrix", row, pick, place);
}
inline Quad load_transposed(const void* row, emulated::Place place = emulated::Place::here()) {
  const auto pick = [](int i, int g, int t, auto at) { return at(i, 2 * t, g) | at(i, 2 * t + 1, g) << 16; };
  return emulated::load_four("ldmatrix.trans", row, pick, place);
}

inline void copy_async(void* to, const void* from, bool inside = true,
                       emulated::Place place = emulated::Place::here()) {
  emulated::check_row("cp.async", to, place);
  if (reinterpret_cast<uintptr_t>(from) % 16) emulated::fault("cp.async", "the source is not a multiple of 16", place);
  emulated::Copy copy{to, 0, place, {}};
  if (inside) std::memcpy(copy.bytes, from, 16);
  std::memset(to, 0xff, 16);
  emulated::begin_copy(copy);
}
inline void commit_copies() { emulated::commit_copies(); }
template <int kLeft> void wait_copies() {
  emulated::Copy copy;
  while (emulated::take_copy(kLeft, copy)) std::memcpy(copy.to, copy.bytes, 16);
}

inline uint32_t two_bf16(float first, float second) { return bf16(first).bits | uint32_t{bf16(second).bits} << 16; }
inline float fast_exp2(float x) { return std::exp2(x); }

}  // namespace isonorm::gpu
