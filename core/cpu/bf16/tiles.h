// Products of bf16 by AMX tiles (Intel, "Architecture Instruction Set Extensions Programming Reference", TDPBF16PS). A
// tile is 16 rows of 64 bytes: 16 pairs of 16 rows of a, 16 columns of 16 pairs of b, or 16 x 16 sums of c. A class
// contains the instructions, and another class does the same in plain code, so that the code around them is tested on
// machines without AMX.
#pragma once

#include "core/cpu/bf16/pairs.h"
#include "core/cpu/subnormals.h"

namespace isonorm {
namespace {

constexpr int64_t kTile = 16;  // rows, pairs and columns of a tile

// A tile of pairs or sums in memory; rows are `step` bytes apart.
struct TileAt {
  const void* p;
  int64_t step;
};

// The sums of R x C tiles, 1 or 2 each. multiply(): c[r][q] += a[r] b[q].
template <int R, int C> class AmxBlock {
 public:
  // Tiles 0 to 3 are sums, 4 and 5 hold a, 6 and 7 hold b. All have 16 rows of 64 bytes.
  AmxBlock() {
    barrier();
    _tile_zero(0);
    if constexpr (C > 1) _tile_zero(1);
    if constexpr (R > 1) _tile_zero(2);
    if constexpr (R > 1 && C > 1) _tile_zero(3);
  }
  void multiply(const TileAt (&a)[R], const TileAt (&b)[C]) {
    barrier();
    _tile_loadd(4, a[0].p, a[0].step);
    _tile_loadd(6, b[0].p, b[0].step);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (C > 1) {
      _tile_loadd(7, b[C - 1].p, b[C - 1].step);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R > 1) {
      _tile_loadd(5, a[R - 1].p, a[R - 1].step);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (R > 1 && C > 1) _tile_dpbf16ps(3, 5, 7);
  }
  void store(float* c, int64_t step) const {
    const int64_t bytes = step * static_cast<int64_t>(sizeof(float));
    _tile_stored(0, c, bytes);
    if constexpr (C > 1) _tile_stored(1, c + kTile, bytes);
    if constexpr (R > 1) _tile_stored(2, c + kTile * step, bytes);
    if constexpr (R > 1 && C > 1) _tile_stored(3, c + kTile * step + kTile, bytes);
    barrier();
  }

  // While it lives, this thread's tiles are configured with their shapes.
  struct Session {
    Session() {
      struct alignas(64) {
        uint8_t palette = 1, start_row = 0, reserved[14] = {};
        uint16_t bytes[16] = {};
        uint8_t rows[16] = {};
      } config;
      static_assert(sizeof(config) == 64);
      std::fill_n(config.bytes, 8, 64);
      std::fill_n(config.rows, 8, 16);
      _tile_loadconfig(&config);
    }
    ~Session() { _tile_release(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
  };

 private:
  // The intrinsics of some compilers do not declare that they read and write memory.
  static void barrier() { asm volatile("" ::: "memory"); }
};

// The same in plain code. Like the instruction, it sums the pairs' first elements in one chain and the second
// elements in another, and adds the sum of both. Subnormal numbers count as 0.
template <int R, int C> class PlainBlock {
 public:
  void multiply(const TileAt (&a)[R], const TileAt (&b)[C]) {
    const FlushSubnormals<float> flush;
    const auto at = [](TileAt t, int64_t row, int64_t i) {
      bf16 x;
      std::memcpy(&x, static_cast<const std::byte*>(t.p) + row * t.step + i * 2, sizeof(x));
      return static_cast<float>(x);
    };
    for (int r = 0; r < R; ++r)
      for (int q = 0; q < C; ++q)
        for (int64_t m = 0; m < kTile; ++m)
          for (int64_t n = 0; n < kTile; ++n) {
            float sums[2] = {};
            for (int64_t p = 0; p < kTile; ++p)
              for (int64_t s = 0; s < 2; ++s) sums[s] += at(a[r], m, 2 * p + s) * at(b[q], p, 2 * n + s);
            sum_[r][q][m][n] += sums[0] + sums[1];
          }
  }
  void store(float* c, int64_t step) const {
    for (int64_t m = 0; m < R * kTile; ++m)
      for (int64_t n = 0; n < C * kTile; ++n) c[m * step + n] = sum_[m / kTile][n / kTile][m % kTile][n % kTile];
  }

  struct Session {
    Session() {}  // avoids a warning about an unused object
  };

 private:
  float sum_[R][C][kTile][kTile] = {};
};

// Rows of a as tiles: for every 16 rows, the tiles of the whole depth. Zeros follow the last row and the last element.
struct TiledRows {
  Pair* p;
  int64_t pairs;  // pairs of a row: whole tiles
  static int64_t size(int64_t rows, int64_t depth) {
    return round_up(rows, kTile) * round_up(ceil_div(depth, 2), kTile);
  }
  Pair* at(int64_t row, int64_t pair) const { return p + row / kTile * kTile * pairs + pair * kTile; }
  TileAt tile(int64_t row, int64_t pair) const { return {at(row, pair), kTile * int64_t{sizeof(Pair)}}; }
};

// Packs the rows x [rows, depth], `step` apart.
inline void pack_tiles(const TiledRows& to, const bf16* x, int64_t step, int64_t rows, int64_t depth) {
  for (int64_t r = 0; r < round_up(rows, kTile); ++r)
    for (int64_t p = 0; p < to.pairs; p += kTile) {
      const int64_t n = r < rows ? std::clamp<int64_t>(depth - 2 * p, 0, 2 * kTile) : 0;
      const auto mask = static_cast<__mmask32>((uint64_t{1} << n) - 1);
      _mm512_storeu_si512(to.at(r, p) + r % kTile * kTile, _mm512_maskz_loadu_epi16(mask, x + r * step + 2 * p));
    }
}

// Packs a strip: lines of pairs, `line` apart, with a pair of every row. The strip must contain whole tiles of rows.
inline void pack_tiles(const TiledRows& to, const Pair* strip, int64_t line, int64_t rows, int64_t pairs) {
  static constexpr Pair zeros[kTile] = {};
  for (int64_t i = 0; i < rows; i += kTile)
    for (int64_t p = 0; p < to.pairs; p += kTile) {
      const Pair* lines[kTile];
      for (int64_t q = 0; q < kTile; ++q) lines[q] = p + q < pairs ? strip + (p + q) * line + i : zeros;
      for (int64_t r = 0; r < kTile; r += 4) transpose_block<kTile>(to.at(i, p) + r * kTile, kTile, lines, r);
    }
}

// c[rows, columns] = from + a b. b begins with a panel. At most R x C tiles.
template <template <int, int> class Block, int R, int C>
void tile_block(int64_t rows, int64_t columns, int64_t depth, const TiledRows& a, int64_t row, const Pair* b,
                int64_t b_step, Rows c, Rows from) {
  alignas(64) float sums[R * kTile * kPanel<Pair>];
  alignas(64) Pair tail[kTile][C * kTile];
  Block<R, C> block;
  for (int64_t p = 0; p < depth; p += kTile) {
    TileAt left[R], right[C];
    const Pair* lines = b + p * b_step;
    int64_t step = b_step;
    if (depth - p < kTile) {  // memory after the panel is not ours
      for (int64_t q = 0; q < kTile; ++q)
        for (int64_t i = 0; i < C * kTile; ++i) tail[q][i] = p + q < depth ? lines[q * b_step + i] : 0;
      lines = tail[0], step = C * kTile;
    }
    for (int r = 0; r < R; ++r) left[r] = a.tile(row + r * kTile, p);
    for (int q = 0; q < C; ++q) right[q] = {lines + q * kTile, step * int64_t{sizeof(Pair)}};
    block.multiply(left, right);
  }
  block.store(sums, kPanel<Pair>);
  finish(sums, 1, rows, columns, c, from);
}

// Like pair_product(), with a in tiles.
template <template <int, int> class Block>
void tile_product(int64_t rows, int64_t columns, const TiledRows& a, const Panels<Pair>& b, Rows c, Rows from) {
  const typename Block<1, 1>::Session session;
  for (int64_t j = 0; j < columns;) {
    const int64_t panel = j / kPanel<Pair> * kPanel<Pair>, width = b.panel_width(panel);
    const Pair* const lines = b.at(0, panel) + (j - panel);
    const bool wide = std::min(columns - j, width - (j - panel)) > kTile;
    const int64_t n = std::min(columns - j, wide ? 2 * kTile : kTile);
    for (int64_t i = 0; i < rows;) {
      const bool high = rows - i > kTile;
      const int64_t m = std::min(rows - i, high ? 2 * kTile : kTile);
      const auto part = [&]<int R, int C>(std::integral_constant<int, R>, std::integral_constant<int, C>) {
        tile_block<Block, R, C>(m, n, b.depth, a, i, lines, width, c.at(i, j), from.at(i, j));
      };
      const std::integral_constant<int, 1> one;
      const std::integral_constant<int, 2> two;
      high ? (wide ? part(two, two) : part(two, one)) : (wide ? part(one, two) : part(one, one));
      i += m;
    }
    j += n;
  }
}

}  // namespace
}  // namespace isonorm
