// What the tiles of attention's forward and backward share: heads of tensors, scratch memory, tiles of scores.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "core/cpu/tile_product.h"
#include "core/cpu/workspace.h"
#include "core/formulas/round_up.h"
#include "core/kernels/attention.h"

namespace isonorm::kernels::cpu {
namespace {

// Tiles of scores: keys by queries, lines of queries `line` elements apart. Depends on the shape alone.
struct AttentionTile {
  static constexpr int64_t unit = 16, most = 128;  // queries of a tile: a multiple of units, at most so many
  int64_t queries, keys, tiles, line;              // of the head; keys of a tile; tiles of queries and their widest

  // Where tile t begins: as equal as can be, for a tile of one unit is slow.
  int64_t begin(int64_t t) const { return std::min(queries, ceil_div(queries, unit) * t / tiles * unit); }
};
AttentionTile attention_tile(int64_t queries, int64_t keys) {
  const auto parts = [](int64_t n, int64_t of) { return std::max<int64_t>(1, ceil_div(n, of)); };
  // Keys and values of a long sequence leave the cache: wider tiles read them less often.
  const int64_t tiles = parts(queries, keys > 512 ? AttentionTile::most : 64),
                units = parts(queries, AttentionTile::unit);
  return {queries, parts(keys, parts(keys, 64)), tiles, parts(units, tiles) * AttentionTile::unit};
}

// One head of a [batch, heads, time, size] tensor: rows of adjacent elements, `step` apart.
template <class T> struct Head {
  T* p;
  int64_t step;
  T* row(int64_t t) const { return p + t * step; }
};
// Head (b, h) of a tensor whose data begin at `base` (null where it is empty).
template <class T> Head<T> head_of(T* base, const Tensor& t, int64_t b, int64_t h) {
  return {base ? base + b * t.strides()[0] + h * t.strides()[1] : nullptr, t.strides()[2]};
}
template <class T> Head<const T> head(const Tensor& t, int64_t b, int64_t h) { return head_of(t.data<T>(), t, b, h); }
template <class T> Strided<T> rows_of(const Head<const T>& x, int64_t t) { return {x.row(t), x.step, 1}; }

// Brings into the second-level cache, a few lines beside each block of a product, what the next head reads and this one
// writes: waiting for memory would take as long as the products of a short sequence.
template <class T> class Fetch {
 public:
  // Head `pair` of all [batch, heads], if there is one.
  void add(const Tensor& t, int64_t pair) {
    const Dims& s = t.shape();
    const int64_t b = pair / s[1], h = pair % s[1];
    if (b < s[0] && s[2] > 0 && s[3] > 0) parts_[count_++] = {head<T>(t, b, h), s[2], s[3]};
  }
  template <class... Block> void operator()(Block...) {
    for (int64_t lines = 20; lines > 0 && now_ < count_;) {  // somewhat more than a core can wait for at a time
      Part& part = parts_[now_];
      for (int64_t i = 0; i < part.size; i += 64 / int64_t{sizeof(T)}, --lines)
        __builtin_prefetch(part.rows.p + i, 0, 2);
      part.rows.p += part.rows.step;
      if (--part.left == 0) ++now_;
    }
  }

 private:
  struct Part {
    Head<const T> rows;
    int64_t left, size;
  };
  Part parts_[8];
  int count_ = 0, now_ = 0;
};

// What all tiles of a call share.
template <class T> struct Problem {
  AttentionSpec spec;
  int64_t heads, queries, keys, size, values;
  AttentionTile tile;
  const T* mask = nullptr;
  Dims mask_strides;

  Problem(AttentionSpec s, const AttentionInputs& in)
      : spec(s),
        heads(in.q.size(1)),
        queries(in.q.size(2)),
        keys(in.k.size(2)),
        size(in.q.size(3)),
        values(in.v.size(3)),
        tile(attention_tile(queries, keys)) {
    if (!in.mask.defined()) return;
    mask = in.mask.data<T>();
    mask_strides = in.mask.strides();
  }

  // Elements of scratch that each thread needs: packed operands and sums of one head, and the tiles.
  int64_t scratch(bool backward) const {
    const auto whole = [](int64_t n) { return round_up(n, 16); };
    const int64_t wide = whole(size), wide_v = whole(values);
    if (!backward) return keys * wide_v + tile.line * (wide + tile.keys + wide_v + 2);
    return keys * (2 * wide + wide_v) + tile.line * (3 * wide + 2 * wide_v + 2 * tile.keys + 3);
  }

  // Keys that the queries [.., end) see.
  int64_t visible(int64_t end) const { return spec.visible(end, keys); }
};

// Hands out the parts of a thread's scratch memory.
template <class T> struct Scratch {
  T* p;
  T* take(int64_t n) { return std::exchange(p, p + whole_lanes<T>(n)); }
  Panels<T> panels(int64_t depth, int64_t width) {
    return {take(depth * whole_lanes<T>(width)), depth, whole_lanes<T>(width)};
  }
};

// A tile: queries [q, q + rows) by keys [k, k + n) of head (b, h).
struct Place {
  int64_t b, h, q, rows, k, n;
};

// The tile where queries [q, q + rows) meet the keys from k on. Along the diagonal of a causal mask it has fewer keys,
// and lacks the registers of queries that see none of them.
template <class T> Place place(const Problem<T>& p, int64_t b, int64_t h, int64_t q, int64_t rows, int64_t k) {
  const int64_t unit = p.tile.line > kPanel<T> ? kPanel<T> : kLanes<T>;
  const int64_t left = p.visible(q + rows) - k, diagonal = q + p.spec.ahead;  // the last key that query q sees
  if (!p.spec.causal || k < diagonal)
    return {b, h, q, rows, k, std::min({p.tile.keys, left, p.spec.causal ? diagonal - k : left})};
  const int64_t blind = (k - diagonal) / unit * unit;
  return {b, h, q + blind, rows - blind, k, std::min(AttentionTile::unit, left)};
}

// Columns of x without the first n: whole panels of several, whole registers of a single one.
template <class T> Panels<T> columns_behind(const Panels<T>& x, int64_t n) {
  return x.width > kPanel<T> ? Panels<T>{x.p + n * x.depth, x.depth, x.width - n}
                             : Panels<T>{x.p + n, x.depth, x.width};
}

// scores [n keys, line] = scale k q^T + mask: a line holds a key's scores with all queries of the tile, so that the
// softmax runs down columns and needs no sums across a register.
template <class T>
void score_tile(const Problem<T>& p, const Place& at, const Head<const T>& k, const Panels<T>& qt, T* scores,
                Fetch<T>& fetch) {
  const int64_t line = p.tile.line;
  product(at.n, p.size, at.rows, T(p.spec.scale), rows_of(k, at.k), qt, 0, 0, scores, line, {}, fetch);
  if (p.mask) {
    const Dims& s = p.mask_strides;
    const T* mask = p.mask + at.b * s[0] + at.h * s[1] + at.q * s[2] + at.k * s[3];
    for (int64_t j = 0; j < at.n; ++j)
      for (int64_t r = 0; r < at.rows; ++r) scores[j * line + r] += mask[r * s[2] + j * s[3]];
  }
  if (!p.spec.causal) return;
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < at.n; ++j)  // from the queries before it
    std::fill_n(scores + j * line, std::clamp<int64_t>(at.k + j - at.q - p.spec.ahead, 0, at.rows), hidden);
}

// A tile's queries [rows, size] as columns.
template <class T> Panels<T> columns_of(T* memory, const Head<const T>& x, int64_t q, int64_t rows, int64_t size) {
  const Panels<T> to{memory, size, whole_lanes<T>(rows)};
  pack_transposed(to, x.row(q), x.step, rows);
  return to;
}

}  // namespace
}  // namespace isonorm::kernels::cpu
