// bf16 matrices in the form that `vdpbf16ps` reads. Two elements that are adjacent along the depth are a pair, and a
// register has sixteen pairs. sum = fma(second, second, sum), then fma(first, first, sum), each rounded to f32. An odd
// depth ends with a zero.
#pragma once

#include <immintrin.h>

#include "core/cpu/tile_product.h"

namespace isonorm {
namespace {

using Pair = uint32_t;
static_assert(kTarget == Isa::avx512);

inline Vec<float> multiply_add(Vec<float> sum, Vec<Pair> a, Vec<Pair> b) {
  return _mm512_dpbf16_ps(sum, std::bit_cast<__m512bh>(a), std::bit_cast<__m512bh>(b));
}

inline Pair pair_of(const bf16* first, const bf16* second) {
  return first->bits | static_cast<Pair>(second ? second->bits : 0) << 16;
}
inline __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << n) - 1); }

// f(i, mask) for registers that cover [0, n).
template <class F> void for_masked(int64_t n, const F& f) {
  for (int64_t i = 0; i < n; i += 16) f(i, first_lanes(n - i));
}

// Sixteen f32 rounded to bf16. Subnormal numbers become 0.
inline __m256i round_to_bf16(Vec<float> v) {
  return std::bit_cast<__m256i>(_mm512_cvtneps_pbh(std::bit_cast<__m512>(v)));
}

// Loads and stores sixteen elements of f32 or bf16, 32 bits each in a register. Lanes outside of the mask are loaded as
// zero and are not stored.
inline Vec<Pair> widen(__m256i bits) {
  return __builtin_convertvector(std::bit_cast<VectorType<uint16_t, 32>::type>(bits), Vec<Pair>);
}
inline Vec<Pair> load_bits(const bf16* p, __mmask16 mask) { return widen(_mm256_maskz_loadu_epi16(mask, p)); }
inline Vec<float> load_masked(const float* p, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, p); }
inline Vec<float> load_masked(const bf16* p, __mmask16 mask) {
  return std::bit_cast<Vec<float>>(load_bits(p, mask) << 16);
}
inline void store_masked(float* p, Vec<float> v, __mmask16 mask) { _mm512_mask_storeu_ps(p, mask, v); }
inline void store_masked(bf16* p, Vec<float> v, __mmask16 mask) { _mm256_mask_storeu_epi16(p, mask, round_to_bf16(v)); }

// Packs the rows x [depth, n], `step` apart, as lines of pairs, `line` apart, with zeros from column n to `width`.
inline void pack_rows(Pair* to, int64_t line, int64_t width, const bf16* x, int64_t step, int64_t depth, int64_t n) {
  for (int64_t r = 0; r < depth; r += 2, to += line, x += 2 * step)
    for (int64_t i = 0; i < width; i += 16) {
      const __mmask16 mask = first_lanes(std::max<int64_t>(0, n - i));
      const Vec<Pair> second = r + 1 < depth ? load_bits(x + step + i, mask) : Vec<Pair>{};
      const Vec<Pair> pairs = load_bits(x + i, mask) | second << 16;
      std::memcpy(to + i, &pairs, sizeof(pairs));
    }
}

// Packs the columns x [n, depth], `step` apart, in the same way. The last one is repeated up to `width`, a multiple of
// sixteen.
inline void pack_columns(Pair* to, int64_t line, int64_t width, const bf16* x, int64_t step, int64_t depth, int64_t n) {
  const int64_t whole = depth / 2;
  for (int64_t j = 0; j < width; j += 16) {
    const bf16* columns[16];
    const Pair* pairs[16];  // read only by memcpy
    for (int i = 0; i < 16; ++i) {
      columns[i] = x + std::min(j + i, n - 1) * step;
      pairs[i] = reinterpret_cast<const Pair*>(columns[i]);
    }
    int64_t r = 0;
    for (; whole >= 4 && r < whole; r += 4) {  // the last four may be packed twice
      const int64_t at = std::min(r, whole - 4);
      transpose_block<16>(to + j + at * line, line, pairs, at);
    }
    for (r = std::min(r, whole); 2 * r < depth; ++r)
      for (int i = 0; i < 16; ++i)
        to[j + r * line + i] = pair_of(columns[i] + 2 * r, 2 * r + 1 < depth ? columns[i] + 2 * r + 1 : nullptr);
  }
}

// The same as panels, from the rows x [depth, n] or the columns x [n, depth].
inline void pack_rows(const Panels<Pair>& to, const bf16* x, int64_t step, int64_t depth, int64_t n) {
  for (int64_t j = 0; j < to.width; j += kPanel<Pair>)
    pack_rows(to.at(0, j), to.panel_width(j), to.panel_width(j), x + j, step, depth, n - j);
}
inline void pack_columns(const Panels<Pair>& to, const bf16* x, int64_t step, int64_t depth, int64_t n) {
  for (int64_t j = 0; j < to.width; j += kPanel<Pair>)
    pack_columns(to.at(0, j), to.panel_width(j), to.panel_width(j), x + j * step, step, depth, n - j);
}

// Rows of f32 or bf16, `step` elements apart.
struct Rows {
  void* p = nullptr;
  bool narrow = false;
  int64_t step = 0;

  Rows() = default;
  Rows(void* p, bool narrow, int64_t step) : p(p), narrow(narrow), step(step) {}
  Rows at(int64_t row, int64_t column) const {
    Rows r = *this;
    if (p) r.p = static_cast<std::byte*>(p) + (row * step + column) * (narrow ? 2 : 4);
    return r;
  }
  template <class F> void visit(const F& f) const { narrow ? f(static_cast<bf16*>(p)) : f(static_cast<float*>(p)); }
};

// c[rows, columns] = from + alpha tile. The tile's lines have 64 elements.
inline void finish(const float* tile, float alpha, int64_t rows, int64_t columns, Rows c, Rows from) {
  const auto write = [&](const auto& add) {
    c.visit([&](auto* to) {
      for (int64_t r = 0; r < rows; ++r)
        for_masked(columns, [&](int64_t i, __mmask16 mask) {
          store_masked(to + r * c.step + i, add(load_lanes<float>(tile + r * kPanel<Pair> + i) * alpha, r, i, mask),
                       mask);
        });
    });
  };
  if (!from.p) return write([](Vec<float> v, int64_t, int64_t, __mmask16) { return v; });
  from.visit([&](const auto* p) {
    write([&](Vec<float> v, int64_t r, int64_t i, __mmask16 mask) {
      return load_masked(p + r * from.step + i, mask) + v;
    });
  });
}

// One block of a b: M rows of V registers, written to `tile`. The pairs in a row of a are `a.column` apart and rows are
// `a.row` apart, counted in bf16.
template <int M, int V> void pair_block(int64_t depth, Strided<bf16> a, const Pair* b, int64_t b_step, float* tile) {
  Vec<float> sum[M][V] = {};
  constexpr int share = V > 2 ? M : 3;  // rows that share a pointer: offsets of many rows do not fit the registers
  const bf16* rows[(M + share - 1) / share];
  unroll<(M + share - 1) / share>([&](auto r) { rows[r] = a.p + r * share * a.row; });
  for (int64_t i = 0; i < depth; ++i, b += b_step) {
    Vec<Pair> line[V];
    unroll<V>([&](auto v) { line[v] = load_lanes<Pair>(b + v * 16); });
    unroll<M>([&](auto m) {
      Pair x;
      std::memcpy(&x, rows[m / share] + m % share * a.row, sizeof(x));
      const Vec<Pair> pair = splat<Pair>(x);
      unroll<V>([&](auto v) { sum[m][v] = multiply_add(sum[m][v], pair, line[v]); });
    });
    for (const bf16*& p : rows) p += a.column;
  }
  unroll<M>([&](auto m) { std::memcpy(tile + m * kPanel<Pair>, sum[m], sizeof(sum[m])); });
}

// All rows of `columns` columns, at most V registers, in blocks of about equal size.
template <int V>
void pair_rows(int64_t rows, int64_t columns, int64_t depth, float alpha, Strided<bf16> a, const Pair* b,
               int64_t b_step, Rows c, Rows from) {
  constexpr int most = block_rows(V);
  alignas(64) float tile[most * kPanel<Pair>];
  for (int64_t blocks = ceil_div(rows, most); blocks > 0; --blocks) {
    const int64_t m = ceil_div(rows, blocks);
    unroll<most>([&](auto less) {
      if (m == less + 1) pair_block<less + 1, V>(depth, a, b, b_step, tile);
    });
    finish(tile, alpha, m, columns, c, from);
    rows -= m, a.p += m * a.row, c = c.at(m, 0), from = from.at(m, 0);
  }
}

// c[rows, columns] = from + alpha a[rows, depth] b[row .. row + depth, columns]. row and depth count pairs. b begins
// with a panel.
inline void pair_product(int64_t rows, int64_t depth, int64_t columns, float alpha, Strided<bf16> a,
                         const Panels<Pair>& b, int64_t row, Rows c, Rows from) {
  for (int64_t j = 0; j < columns;) {
    const int64_t panel = j / kPanel<Pair> * kPanel<Pair>, width = b.panel_width(panel), n = columns - j;
    const Pair* const p = b.at(row, panel) + (j - panel);
    const auto part = [&]<int V>(std::integral_constant<int, V>) {
      const int64_t count = std::min<int64_t>(n, V * 16);
      pair_rows<V>(rows, count, depth, alpha, a, p, width, c.at(0, j), from.at(0, j));
      j += count;
    };
    const int64_t left = std::min(n, width - (j - panel));
    if (left > 48)
      part(std::integral_constant<int, 4>{});
    else if (left > 16)
      part(std::integral_constant<int, 2>{});
    else
      part(std::integral_constant<int, 1>{});
  }
}

}  // namespace
}  // namespace isonorm
