// Products of bf16 matrices, c = from + a b, blocked like products of f32 (core/cpu/gemm.h) with pairs instead of
// elements. An element is the sum over blocks of the depth in order, in f32, each a chain over pairs in order, rounded
// to c's dtype at the end. Its bits do not depend on the number of threads, rows or columns.
#pragma once

#include "core/cpu/bf16/products.h"
#include "core/cpu/bf16/tiles.h"
#include "core/cpu/gemm.h"

namespace isonorm {
namespace {

// The rows of a contiguous tensor of f32 or bf16, for reading and for writing; null if it is undefined.
inline Rows readable(const Tensor& t, int64_t step) {
  if (!t.defined()) return {};
  const bool narrow = t.dtype() == DType::bf16;
  const void* p = narrow ? static_cast<const void*>(t.data<bf16>()) : t.data<float>();
  return {const_cast<void*>(p), narrow, step};
}
inline Rows writable(const Tensor& t, int64_t step) {
  if (t.defined()) t.impl().storage->bump_version();
  return readable(t, step);
}

// A matrix b [k, n] of bf16, packed whole, in blocks of the depth and panels of columns.
class PackedPairs {
 public:
  // `block`: pairs of a block; the last block may have fewer.
  PackedPairs(int64_t k, int64_t n, Strided<bf16> b, int64_t block)
      : k_(k), n_(n), pairs_(ceil_div(k, 2)), width_(whole_lanes<Pair>(n)), block_(block), memory_(pairs_ * width_) {
    const int64_t panels = ceil_div(n, kPanel<Pair>), few = std::max<int64_t>(1, 16384 / (block_ * kPanel<Pair>));
    parallel_for(panels * ceil_div(pairs_, block_), few, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t p = i / panels * block_, j = i % panels * kPanel<Pair>;
        const Panels<Pair> to = at(p, j);
        const int64_t columns = std::min(kPanel<Pair>, n - j), depth = std::min(2 * to.depth, k_ - 2 * p);
        const bf16* x = b.p + 2 * p * b.row + j * b.column;
        b.column == 1 ? pack_rows(to.p, to.panel_width(0), to.panel_width(0), x, b.row, depth, columns)
                      : pack_columns(to.p, to.panel_width(0), to.panel_width(0), x, b.column, depth, columns);
      }
    });
  }

  int64_t depth() const { return k_; }
  int64_t columns() const { return n_; }
  int64_t block() const { return block_; }
  int64_t pairs() const { return pairs_; }
  // The pairs [p, p + block()) from `column` on. p must begin a block, `column` a panel.
  Panels<Pair> at(int64_t p, int64_t column) const {
    const int64_t depth = std::min(block_, pairs_ - p);
    return {memory_.data() + p * width_ + column * depth, depth, width_ - column};
  }

 private:
  int64_t k_, n_, pairs_, width_, block_;
  Workspace<Pair> memory_;
};

// The packed [k, n] that keep_packed left with the storage of t, if t begins with its storage. Used by products that
// read pairs of a in place. Null if there is none.
inline const PackedPairs* kept_pairs(const Tensor& t, int64_t k, int64_t n) {
  const auto* kept = t.impl().offset == 0 ? static_cast<const PackedPairs*>(t.impl().storage->derived()) : nullptr;
  return kept && kept->depth() == k && kept->columns() == n ? kept : nullptr;
}

// c [m, n] (bf16 or f32) = from + a [m, k] b [k, n]. In a and in b, one of the two strides is 1. `from` may be c.
struct PairGemm {
  int64_t m, n, k;
  Strided<bf16> a, b;
  Rows c, from;
  float* sums = nullptr;  // [m]: the sums of a's rows, added to the old contents if `add`
  bool add = false;
  Multiplier by = multiplier();
};

// True if pairs of a are read in place.
inline bool reads_in_place(const PairGemm& g) { return g.a.column == 1 && g.k % 2 == 0 && !g.sums; }
// Number of pairs in a block, for a depth of k.
inline int64_t block_of(int64_t k, bool in_place) {
  return std::max<int64_t>(1, std::min(ceil_div(k, 2), depth_block(ceil_div(k, 2), !in_place)));
}

// sums[rows] = the sums of a strip over its lines, added to the old contents if `add`.
inline void sum_pairs(const Pair* strip, int64_t rows, int64_t depth, float* sums, bool add) {
  const Vec<Pair> ones = splat<Pair>(0x3f803f80);
  for_masked(rows, [&](int64_t i, __mmask16 mask) {
    Vec<float> sum{};
    for (int64_t p = 0; p < depth; ++p) sum = multiply_add(sum, load_lanes<Pair>(strip + p * kStrip + i), ones);
    store_masked(sums + i, add ? sum + load_masked(sums + i, mask) : sum, mask);
  });
}

// Like pair_product(), by tiles.
inline void tile_product(Multiplier by, int64_t rows, int64_t columns, const TiledRows& a, const Panels<Pair>& b,
                         Rows c, Rows from) {
  by == Multiplier::tiles ? tile_product<AmxBlock>(rows, columns, a, b, c, from)
                          : tile_product<PlainBlock>(rows, columns, a, b, c, from);
}

// c[rows, columns] = from + a b for contiguous rows a of `depth` elements, `step` apart. With Multiplier::registers, a
// row of odd depth must be followed by a 0.
inline void rows_product(Multiplier by, int64_t rows, int64_t columns, const bf16* a, int64_t step, int64_t depth,
                         const Panels<Pair>& b, Rows c, Rows from) {
  if (by == Multiplier::registers) return pair_product(rows, b.depth, columns, 1, {a, step, 2}, b, 0, c, from);
  const Workspace<Pair> memory(TiledRows::size(kStrip, depth));
  const TiledRows tiles{memory.data(), round_up(b.depth, kTile)};
  for (int64_t i = 0; i < rows; i += kStrip) {
    const int64_t count = std::min(kStrip, rows - i);
    pack_tiles(tiles, a + i * step, step, count, depth);
    tile_product(by, count, columns, tiles, b, c.at(i, 0), from.at(i, 0));
  }
}

// Computes the rows [row, row + rows) and columns [column, column + columns) of from + a b in the calling thread. c and
// from point to the first of these elements. Also computes `sums` if it is wanted.
inline void pair_tile(const PairGemm& g, const PackedPairs& b, int64_t row, int64_t rows, int64_t column,
                      int64_t columns, Rows c, Rows from) {
  const bool tiled = g.by != Multiplier::registers, by_rows = tiled ? g.a.column == 1 && !g.sums : reads_in_place(g);
  const bool in_parts = b.pairs() > b.block() && c.narrow;
  const int64_t most = by_rows ? rows : std::min(rows, kStrip);
  const Workspace<Pair> strip(by_rows ? 1 : b.block() * kStrip);
  const Workspace<Pair> tiles(tiled && !by_rows ? TiledRows::size(most, 2 * b.block()) : 1);
  const Workspace<float> partial(in_parts ? rows * columns : 1);
  const Rows sums = in_parts ? Rows(partial.data(), false, columns) : c;
  for (int64_t p = 0; p < b.pairs(); p += b.block()) {
    const Panels<Pair> panels = b.at(p, column);
    const bool last = p + panels.depth == b.pairs();
    for (int64_t i = 0; i < rows; i += most) {
      const int64_t count = std::min(most, rows - i);
      const bf16* x = g.a.p + (row + i) * g.a.row + 2 * p * g.a.column;
      const int64_t depth = std::min(2 * panels.depth, g.k - 2 * p);
      const Rows to = last ? c.at(i, 0) : sums.at(i, 0), base = p == 0 ? from.at(i, 0) : sums.at(i, 0);
      if (by_rows) {
        rows_product(g.by, count, columns, x, g.a.row, depth, panels, to, base);
        continue;
      }
      g.a.column == 1 ? pack_columns(strip.data(), kStrip, round_up(count, 16), x, g.a.row, depth, count)
                      : pack_rows(strip.data(), kStrip, round_up(count, 16), x, g.a.column, depth, count);
      if (g.sums && column == 0) sum_pairs(strip.data(), count, panels.depth, g.sums + row + i, p > 0 || g.add);
      if (tiled) {
        const TiledRows t{tiles.data(), round_up(panels.depth, kTile)};
        pack_tiles(t, strip.data(), kStrip, count, panels.depth);
        tile_product(g.by, count, columns, t, panels, to, base);
      } else {
        const Strided<bf16> a{reinterpret_cast<const bf16*>(strip.data()), 2, 2 * kStrip};
        pair_product(count, panels.depth, columns, 1, a, panels, 0, to, base);
      }
    }
  }
}

// The product in tasks. A task multiplies some rows by some columns; tasks with the same columns follow each other.
inline void pair_gemm(const PairGemm& g, const PackedPairs& b) {
  const int64_t few = reads_in_place(g) ? 22 * kBlockRows : 4 * kStrip;
  const Partition blocks = g.m * g.n * g.k <= kWorthSharing ? Partition{g.m, g.m > 0} : thread_blocks(g.m, few);
  const int64_t line = b.block() * static_cast<int64_t>(sizeof(Pair));
  const int64_t columns = std::max<int64_t>(1, kPackedBytes / line / kPanel<Pair>) * kPanel<Pair>;
  parallel_for(blocks.count * std::max<int64_t>(1, ceil_div(g.n, columns)), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = blocks.begin(t % blocks.count), j = t / blocks.count * columns;
      pair_tile(g, b, i, blocks.begin(t % blocks.count + 1) - i, j, std::min(columns, g.n - j), g.c.at(i, j),
                g.from.at(i, j));
    }
  });
}
inline void pair_gemm(const PairGemm& g) { pair_gemm(g, PackedPairs(g.k, g.n, g.b, block_of(g.k, reads_in_place(g)))); }

}  // namespace
}  // namespace isonorm
