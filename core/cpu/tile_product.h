// Products of small matrices in cache: c = from + alpha a b. A block of c stays in registers while lines of b are
// multiplied by broadcast elements of a. It neither packs nor uses threads; gemm.h adds both for large matrices.
#pragma once

#include <algorithm>
#include <utility>

#include "core/cpu/lanes.h"
#include "core/formulas/round_up.h"

namespace isonorm {
namespace {

constexpr int kPanelVectors = kTarget == Isa::avx512 ? 4 : 2;    // registers in one line of a block of c
constexpr int kBlockVectors = kTarget == Isa::avx512 ? 24 : 12;  // registers in the block
template <class T> constexpr int64_t kPanel = kPanelVectors* kLanes<T>;

template <class T> int64_t whole_lanes(int64_t n) { return round_up(n, kLanes<T>); }

// A matrix [depth, width], stored panel by panel of kPanel columns, so that lines of a panel are adjacent. width is a
// multiple of the lanes.
template <class T> struct Panels {
  T* p;
  int64_t depth, width;
  int64_t panel_width(int64_t column) const { return std::min(kPanel<T>, width - column); }
  T* at(int64_t row, int64_t column) const {
    return p + column * depth + row * panel_width(column);
  }  // `column` must begin a panel
  int64_t size() const { return depth * width; }
};

// The same matrix in place, unpacked: its rows are `step` elements apart.
template <class T> struct Unpacked {
  const T* p;
  int64_t step;
  int64_t panel_width(int64_t) const { return step; }
  const T* at(int64_t row, int64_t column) const { return p + row * step + column; }
};

// Packs the rows of x [depth, n], `step` apart, with zeros after column n. x has type T, or bf16 if T is float.
template <class T, class S> void pack(const Panels<T>& to, const S* x, int64_t step, int64_t n) {
  constexpr int64_t lanes = kLanes<T>;
  for (int64_t c = 0; c < to.width; c += kPanel<T>) {
    const int64_t w = to.panel_width(c), filled = std::clamp<int64_t>(n - c, 0, w);
    T* line = to.at(0, c);
    int64_t r = 0;
    if (filled > 0 && filled < lanes && w == lanes && step > 0) {  // whole registers, as long as they end within x
      const Mask<T> behind = last_lanes<T>(lanes - filled);
      for (const int64_t end = to.depth - ceil_div(lanes - filled, step); r < end; ++r, line += w)
        store_lanes<T>(line, std::bit_cast<Vec<T>>(std::bit_cast<Mask<T>>(load_lanes<T>(x + r * step + c)) & ~behind));
    }
    for (; r < to.depth; ++r, line += w) {
      for_lanes<T>(filled, [&](int64_t i, auto part) { part.store(line + i, part.load(x + r * step + c + i)); });
      for (int64_t i = filled; i < w; ++i) line[i] = T(0);
    }
  }
}

// Shuffles lanes in the same way in all quads: I0 to I3 select lanes 0 to 3 of a's quad or, as 4 to 7, of b's. N lanes
// each.
template <int I0, int I1, int I2, int I3, int N, class V> V shuffle_quads(V a, V b) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    constexpr int from[4] = {I0, I1, I2, I3};
    return __builtin_shufflevector(a, b, (I / 4 * 4 + from[I % 4] % 4 + from[I % 4] / 4 * N)...);
  }
  (std::make_integer_sequence<int, N>{});
}

// N lanes: the elements [r, r + 4) of rows 0, 4, 8, ...
template <int N, class T, class S> auto load_quads(const S* const* rows, int64_t r) {
  typename VectorType<T, N * sizeof(T)>::type v;
  if constexpr (N > 4) {
    const auto low = load_quads<N / 2, T>(rows, r), high = load_quads<N / 2, T>(rows + N / 2, r);
    v = [&]<int... I>(std::integer_sequence<int, I...>) { return __builtin_shufflevector(low, high, I...); }
    (std::make_integer_sequence<int, N>{});
  } else if constexpr (std::is_same_v<T, S>) {
    std::memcpy(&v, rows[0] + r, sizeof(v));
  } else {
    typename VectorType<uint16_t, 8>::type half;
    std::memcpy(&half, rows[0] + r, sizeof(half));
    v = std::bit_cast<decltype(v)>(__builtin_convertvector(half, typename VectorType<uint32_t, 16>::type) << 16);
  }
  return v;
}

// 4 lines of N elements, `line` apart: the transpose of the elements [r, r + 4) of N rows.
template <int N, class T, class S> void transpose_block(T* to, int64_t line, const S* const* rows, int64_t r) {
  const auto a = load_quads<N, T>(rows, r), b = load_quads<N, T>(rows + 1, r);
  const auto c = load_quads<N, T>(rows + 2, r), d = load_quads<N, T>(rows + 3, r);
  const auto ab = shuffle_quads<0, 4, 1, 5, N>(a, b), cd = shuffle_quads<0, 4, 1, 5, N>(c, d);
  const auto ef = shuffle_quads<2, 6, 3, 7, N>(a, b), gh = shuffle_quads<2, 6, 3, 7, N>(c, d);
  const auto store = [&](int64_t q, auto v) { std::memcpy(to + q * line, &v, sizeof(v)); };
  store(0, shuffle_quads<0, 1, 4, 5, N>(ab, cd));
  store(1, shuffle_quads<2, 3, 6, 7, N>(ab, cd));
  store(2, shuffle_quads<0, 1, 4, 5, N>(ef, gh));
  store(3, shuffle_quads<2, 3, 6, 7, N>(ef, gh));
}

// Packs the transpose of x [n, depth]. Columns after n repeat the last one. Lines of a panel may share the sets of the
// first-level cache, so a register is stored as soon as its elements are gathered, not a quad at a time.
template <class T, class S> void pack_transposed(const Panels<T>& to, const S* x, int64_t step, int64_t n) {
  constexpr int lanes = kLanes<T>;
  for (int64_t c = 0; c < to.width; c += kPanel<T>) {
    const int64_t w = to.panel_width(c);
    for (int64_t j = 0; j < w; j += lanes) {
      T* column = to.at(0, c) + j;
      const S* rows[lanes];
      for (int i = 0; i < lanes; ++i) rows[i] = x + std::min(c + j + i, n - 1) * step;
      int64_t r = 0;
      if constexpr (lanes >= 4)
        for (; to.depth >= 4 && r < to.depth; r += 4) {  // the last four elements may be packed twice
          const int64_t at = std::min(r, to.depth - 4);
          transpose_block<lanes>(column + at * w, w, rows, at);
        }
      for (; r < to.depth; ++r)
        for (int i = 0; i < lanes; ++i) column[r * w + i] = T(rows[i][r]);
    }
  }
}

// f(0), ..., f(N - 1) with constants as arguments, so that arrays indexed by them live in registers.
template <int N, class F> ISO_HD void unroll(const F& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, N>{});
}

// Element (r, i) of a is p[r row + i column].
template <class T> struct Strided {
  const T* p;
  int64_t row, column;
};

// Rows that are added to a product, `step` apart; 0 if it is one row for all, such as a bias. Null: nothing is added.
template <class T> struct From {
  const T* p = nullptr;
  int64_t step = 0;
  From at(int64_t row, int64_t column) const { return {p ? p + row * step + column : nullptr, step}; }
};

// Multiply-adds that take some 5 us: fewer do not pay for a second thread.
constexpr int64_t kWorthSharing = 1 << 18;

// An action that each block of a product runs together with its sums. This one prefetches c to the first-level cache.
struct BringResult {
  template <class T> void operator()(const T* c, int64_t c_step, int rows, int n) const {
    for (int m = 0; m < rows; ++m)
      for (int i = 0; i < n; i += kLanes<T>) __builtin_prefetch(c + m * c_step + i, 1);
  }
};

// One block of c: M rows of V registers, `c_step` apart. Sums over `depth` lines of b, `b_step` apart, and columns of
// a.
template <int M, int V, class T, class Aside>
void product_block(int64_t depth, T alpha, Strided<T> a, const T* b, int64_t b_step, T* c, int64_t c_step, From<T> from,
                   Aside& aside) {
  Vec<T> sum[M][V] = {};
  aside(c, c_step, M, V * kLanes<T>);
  constexpr int share = V > 2 ? M : 3;  // rows that share a pointer: offsets of many rows do not fit the registers
  const T* rows[(M + share - 1) / share];
  unroll<(M + share - 1) / share>([&](auto r) { rows[r] = a.p + r * share * a.row; });
#pragma GCC unroll 4
  for (int64_t i = 0; i < depth; ++i, b += b_step) {
    Vec<T> line[V];
    unroll<V>([&](auto v) { line[v] = load_lanes<T>(b + v * kLanes<T>); });
    unroll<M>([&](auto m) {
      const Vec<T> x = splat<T>(rows[m / share][m % share * a.row]);
      unroll<V>([&](auto v) { sum[m][v] += x * line[v]; });
    });
    for (const T*& p : rows) p += a.column;
  }
  unroll<M>([&](auto m) {
    unroll<V>([&](auto v) {
      const Vec<T> y = sum[m][v] * alpha;
      store_lanes<T>(c + m * c_step + v * kLanes<T>,
                     from.p ? load_lanes<T>(from.p + m * from.step + v * kLanes<T>) + y : y);
    });
  });
}

// The most rows of a block with `vectors` registers per row.
constexpr int block_rows(int vectors) { return std::min(kBlockVectors / vectors, 12); }

// All rows, in blocks of about equal size, because a block with one or two rows would wait for its own sums.
template <int V, class T, class Aside>
void product_rows(int64_t rows, int64_t depth, T alpha, Strided<T> a, const T* b, int64_t b_step, T* c, int64_t c_step,
                  From<T> from, Aside& aside) {
  constexpr int most = block_rows(V);
  for (int64_t blocks = ceil_div(rows, most); blocks > 0; --blocks) {
    const int64_t m = ceil_div(rows, blocks);
    unroll<most>([&](auto less) {
      if (m == less + 1) product_block<less + 1, V>(depth, alpha, a, b, b_step, c, c_step, from, aside);
    });
    rows -= m, a.p += m * a.row, c += m * c_step, from = from.at(m, 0);
  }
}

// c[rows, columns] = from + alpha a[rows, depth] b[row .. row + depth, column .. column + columns]. Columns are
// computed in whole registers, so c and from need room for them. b is Unpacked, or Panels with a panel that begins at
// `column`.
template <class T, class B, class Aside = BringResult>
void product(int64_t rows, int64_t depth, int64_t columns, T alpha, Strided<T> a, const B& b, int64_t row,
             int64_t column, T* c, int64_t c_step, From<T> from = {}, Aside&& aside = {}) {
  for (int64_t j = 0; j < columns; j += kPanel<T>) {
    const T* panel = b.at(row, column + j);
    const int64_t step = b.panel_width(column + j);
    const int64_t vectors = std::min<int64_t>(kPanelVectors, ceil_div(columns - j, kLanes<T>));
    unroll<kPanelVectors>([&](auto v) {
      constexpr int n = v + 1;
      if (vectors == n) product_rows<n>(rows, depth, alpha, a, panel, step, c + j, c_step, from.at(0, j), aside);
    });
  }
}

}  // namespace
}  // namespace isonorm
