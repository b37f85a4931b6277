// Parts that attention's forward and backward share: heads of tensors, scratch memory, tiles of scores.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "core/cpu/softmax_row.h"
#include "core/cpu/tile_product.h"
#include "core/cpu/workspace.h"
#include "core/formulas/round_up.h"
#include "core/kernels/attention.h"

namespace isonorm::kernels::cpu {
namespace {

// The tiles of scores: keys by queries. Each key has a line of queries; lines are `line` elements apart. Depends only
// on the shape.
struct AttentionTile {
  static constexpr int64_t unit = 16, most = 128;  // queries of a tile: a multiple of `unit`, at most `most`
  int64_t queries, keys, tiles, line;              // of the head; keys of a tile; tiles of queries and their widest

  // First query of tile t. Tiles are as equal as possible, because a tile with one unit is slow.
  int64_t begin(int64_t t) const { return std::min(queries, ceil_div(queries, unit) * t / tiles * unit); }
};
// Chooses the tiles. Every tile has a multiple of `together` keys, except at the end.
AttentionTile attention_tile(int64_t queries, int64_t keys, int64_t together) {
  const auto parts = [](int64_t n, int64_t of) { return std::max<int64_t>(1, ceil_div(n, of)); };
  // Keys and values of a long sequence do not stay in the cache: wider tiles read them less often.
  const int64_t tiles = parts(queries, keys > 512 ? AttentionTile::most : 64),
                units = parts(queries, AttentionTile::unit);
  return {queries, round_up(parts(keys, parts(keys, 64)), together), tiles, parts(units, tiles) * AttentionTile::unit};
}

// One head of a [batch, heads, time, size] tensor: rows of adjacent elements, `step` apart.
template <class T> struct Head {
  T* p;
  int64_t step;
  T* row(int64_t t) const { return p + t * step; }
};
// Head (b, h) of a tensor whose data begin at `base` (null if it is empty).
template <class T> Head<T> head_of(T* base, const Tensor& t, int64_t b, int64_t h) {
  return {base ? base + b * t.strides().v[0] + h * t.strides().v[1] : nullptr, t.strides().v[2]};
}
template <class T> Head<const T> head(const Tensor& t, int64_t b, int64_t h) { return head_of(t.data<T>(), t, b, h); }
template <class T> Strided<T> rows_of(const Head<const T>& x, int64_t t) { return {x.row(t), x.step, 1}; }

// Prefetches to the second-level cache the inputs of the next head and the outputs of this head, a few lines with each
// block of a product. Waiting for memory would take as long as the products of a short sequence.
template <class T> class Fetch {
 public:
  // Adds head number `pair` of [batch, heads] of t, if there is one.
  void add(const Tensor& t, int64_t pair) {
    const Dims& s = t.shape();
    const int64_t b = pair / s.v[1], h = pair % s.v[1];
    if (b < s.v[0] && s.v[2] > 0 && s.v[3] > 0) parts_[count_++] = {head<T>(t, b, h), s.v[2], s.v[3]};
  }
  template <class... Block> void operator()(Block...) {
    for (int64_t lines = 20; lines > 0 && now_ < count_;) {  // a few more than a core can load at a time
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

// Data that all tiles of a call share. Scores have type T, tensors Stored; products take `together` elements of the
// depth at a time.
template <class T, class Stored = T> struct Problem {
  static constexpr int64_t together = sizeof(T) / sizeof(Stored);
  AttentionSpec spec;
  int64_t heads, queries, keys, size, values;
  AttentionTile tile;
  const Stored* mask = nullptr;
  Dims mask_strides;

  Problem(AttentionSpec s, const AttentionInputs& in)
      : spec(s),
        heads(in.q.size(1)),
        queries(in.q.size(2)),
        keys(in.k.size(2)),
        size(in.q.size(3)),
        values(in.v.size(3)),
        tile(attention_tile(queries, keys, together)) {
    if (!in.mask.defined()) return;
    mask = in.mask.data<Stored>();
    mask_strides = in.mask.strides();
  }

  // Elements of scratch memory that each thread needs: packed operands and sums of a head, and the tiles.
  int64_t scratch(bool backward) const {
    const auto whole = [](int64_t n) { return round_up(n, 16); };
    const int64_t wide = whole(size), wide_v = whole(values);
    if (!backward) return keys * wide_v + tile.line * (wide + tile.keys + wide_v + 2);
    return keys * (2 * wide + wide_v) + tile.line * (3 * wide + 2 * wide_v + 2 * tile.keys + 3);
  }

  // Number of keys that queries before `end` see.
  int64_t visible(int64_t end) const { return spec.visible(end, keys); }
};

// Divides a thread's scratch memory into parts.
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

// The tile of queries [q, q + rows) and the keys from k on. Along the diagonal of a causal mask it has fewer keys, and
// leaves out whole registers of queries that see no key.
template <class T, class Stored>
Place place(const Problem<T, Stored>& p, int64_t b, int64_t h, int64_t q, int64_t rows, int64_t k) {
  const int64_t unit = p.tile.line > kPanel<T> ? kPanel<T> : kLanes<T>;
  const int64_t left = p.visible(q + rows) - k, diagonal = q + p.spec.ahead;  // the last key that query q sees
  const int64_t before = (diagonal - k) / p.together * p.together;
  if (!p.spec.causal || before > 0)
    return {b, h, q, rows, k, std::min({p.tile.keys, left, p.spec.causal ? before : left})};
  const int64_t blind = std::max<int64_t>(0, k - diagonal) / unit * unit;
  return {b, h, q + blind, rows - blind, k, std::min(AttentionTile::unit, left)};
}

// Columns of x without the first n. n is a multiple of the panel width if x has several panels, else of the register
// width.
template <class T> Panels<T> columns_behind(const Panels<T>& x, int64_t n) {
  return x.width > kPanel<T> ? Panels<T>{x.p + n * x.depth, x.depth, x.width - n}
                             : Panels<T>{x.p + n, x.depth, x.width};
}

// Adds the mask to scores [n keys, line] = scale k q^T. A line holds one key's scores for all queries of the tile, so
// that softmax runs down columns and needs no sum across a register.
template <class T, class Stored> void hide(const Problem<T, Stored>& p, const Place& at, T* scores) {
  const int64_t line = p.tile.line;
  if (p.mask) {
    const Dims& s = p.mask_strides;
    const Stored* mask = p.mask + at.b * s.v[0] + at.h * s.v[1] + at.q * s.v[2] + at.k * s.v[3];
    for (int64_t j = 0; j < at.n; ++j)
      for (int64_t r = 0; r < at.rows; ++r) scores[j * line + r] += T(mask[r * s.v[2] + j * s.v[3]]);
  }
  if (!p.spec.causal) return;
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < at.n; ++j)  // hides each key from earlier queries
    std::fill_n(scores + j * line, std::clamp<int64_t>(at.k + j - at.q - p.spec.ahead, 0, at.rows), hidden);
}

// Turns scores into e^(score - top), where top is the query's running maximum, and updates the running sums.
template <class T, class Aside>
void softmax_tile(int64_t line, const Place& at, T* scores, T* top, T* total, T* sums, int64_t wide, Aside& fetch) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  const int64_t width = whole_lanes<T>(at.rows);
  T correction[AttentionTile::most];
  for (int64_t i = 0; i < width; i += kLanes<T>) {
    const Vec<T> before = load_lanes<T>(top + i);
    Vec<T> best[4] = {before, before, before, before};
    const auto see = [&](Vec<T>& b, int64_t j) {
      const Vec<T> v = load_lanes<T>(scores + j * line + i);
      b = v > b ? v : b;
    };
    int64_t j = 0;
    for (; j + 4 <= at.n; j += 4) unroll<4>([&](auto u) { see(best[u], j + u); });
    for (; j < at.n; ++j) see(best[0], j);
    best[0] = best[0] > best[1] ? best[0] : best[1];
    best[2] = best[2] > best[3] ? best[2] : best[3];
    best[0] = best[0] > best[2] ? best[0] : best[2];
    store_lanes<T>(top + i, best[0]);
    // A query that has seen no key yet keeps its sum of 0.
    const Vec<T> shift = best[0] == lowest ? splat<T>(0) : best[0];
    Vec<T> sum{};
    for (j = 0; j < at.n; ++j) {
      if (j % 16 == 0) fetch();
      const Vec<T> e = exp_lanes<T>(load_lanes<T>(scores + j * line + i) - shift);
      store_lanes<T>(scores + j * line + i, e);
      sum += e;
    }
    const Vec<T> c = exp_lanes<T>(before - shift);
    store_lanes<T>(correction + i, c);
    store_lanes<T>(total + i, load_lanes<T>(total + i) * c + sum);
  }
  if (at.k == 0) return;
  for (int64_t r = 0; r < at.rows; ++r)
    if (correction[r] != 1)
      for (int64_t i = 0; i < wide; i += kLanes<T>)
        store_lanes<T>(sums + r * wide + i, load_lanes<T>(sums + r * wide + i) * correction[r]);
}

// Turns scores and dP [n keys, line] into weights and the gradient of the scores, P (dP - <dP, P>).
template <class T, class Aside>
void softmax_gradient(int64_t line, const Place& at, T* weights, T* dweights, const T* top, const T* log,
                      const T* along, Aside& fetch) {
  for (int64_t i = 0; i < at.rows; i += kLanes<T>) {
    const Vec<T> shift = load_lanes<T>(top + i), total = load_lanes<T>(log + i), mean = load_lanes<T>(along + i);
    for (int64_t j = 0; j < at.n; ++j) {
      if (j % 16 == 0) fetch();
      T *w = weights + j * line + i, *dw = dweights + j * line + i;
      const Vec<T> e = exp_lanes<T>((load_lanes<T>(w) - shift) - total);
      store_lanes<T>(w, e);
      store_lanes<T>(dw, e * (load_lanes<T>(dw) - mean));
    }
  }
}

// Number of items that are worth a thread. An item is a head, or one of its `parts` parts.
template <class T, class Stored> int64_t worth_sharing(const Problem<T, Stored>& p, int64_t parts) {
  const int64_t work = p.queries * p.keys * (p.size + p.values) / parts;
  return std::max<int64_t>(1, kWorthSharing / std::max<int64_t>(1, work));
}

// The queries [rows, size] of a tile as columns.
template <class T> Panels<T> columns_of(T* memory, const Head<const T>& x, int64_t q, int64_t rows, int64_t size) {
  const Panels<T> to{memory, size, whole_lanes<T>(rows)};
  pack_transposed(to, x.row(q), x.step, rows);
  return to;
}

}  // namespace
}  // namespace isonorm::kernels::cpu
