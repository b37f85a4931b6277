// Products of large matrices, c = from + a b, blocked as in Goto & van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (ACM TOMS 34, 2008): a block of b is packed into panels that stay in the second-level cache, rows of
// `a` pass over it, and c is written once from registers. An element is the sum over blocks of the depth in order, each
// a chain of multiply-adds in order. Its bits therefore do not depend on the number of threads, rows or columns (one
// row of a transposed a is an exception: depth_block()).
#pragma once

#include <optional>

#include "core/cpu/strided.h"
#include "core/cpu/subnormals.h"
#include "core/cpu/tile_product.h"
#include "core/cpu/workspace.h"
#include "core/formulas/round_up.h"
#include "core/kernels/matmul.h"
#include "core/system/parallel.h"

namespace isonorm {

// A matrix [k, n], packed for products. keep_packed() keeps it with the storage of its transpose.
struct PackedMatrix {
  PackedMatrix(int64_t k, int64_t n, int64_t panel, DType dtype, int64_t count)
      : k(k), n(n), panel(panel), dtype(dtype), memory(count * size_of(dtype), kCpu) {}
  int64_t k, n, panel;  // panel: columns of a panel, which identify the instruction set that packed it
  DType dtype;
  Storage memory;
};

namespace {

constexpr int64_t kMostDepth = 512;                            // most columns of a, and rows of b, in a block
constexpr int64_t kMostPackedDepth = 256;                      // the same if a is packed, too
constexpr int64_t kPackedBytes = 512 << 10;                    // packed b: a part of the second-level cache
constexpr int64_t kPassingBytes = 128 << 10;                   // rows of a that pass over the packed block together
constexpr int64_t kBlockRows = kBlockVectors / kPanelVectors;  // rows of c in registers
constexpr int64_t kFewRows = 512;                              // a tile with fewer rows of c packs too much for them
constexpr int64_t kStrip = 8 * kBlockRows;                     // rows of a that are packed together, if needed

// c [m, n], with rows c_step apart, = from + a [m, k] b [k, n]. In a and in b, one of the two strides is 1. `from` may
// be c. Elements of a and b have type T, or bf16 if T is float; in this case the elements of a row of a are not
// adjacent.
template <class T, class S = T> struct Gemm {
  int64_t m, n, k;
  Strided<S> a, b;
  T* c;
  int64_t c_step;
  From<T> from = {};
  T* sums = nullptr;  // [m], if elements of a's rows are not adjacent: a's sums over k, added if `from` is given
};

// The part of c that one thread computes.
struct Tile {
  int64_t row, rows, column, columns;
};

// Length of a depth block for a depth of k: a multiple of 64, in blocks of about one size. The bits depend on it. A
// single row of a transposed a has the same layout as a row of an a that is not transposed. It is not packed and has
// the longer blocks, so for k > kMostPackedDepth its bits may differ from the bits of the same row among other rows.
inline int64_t depth_block(int64_t k, bool a_packed) {
  constexpr int64_t unit = 64;
  return round_up(ceil_div(k, ceil_div(k, a_packed ? kMostPackedDepth : kMostDepth)), unit);
}

// Block sizes for a tile with n columns.
template <class T> struct Blocking {
  int64_t depth, columns, rows;
  Blocking(int64_t n, int64_t k, bool a_packed) {
    depth = std::min(k, depth_block(k, a_packed));
    const int64_t line = depth * static_cast<int64_t>(sizeof(T));
    columns = std::min(whole_lanes<T>(n), std::max<int64_t>(1, kPackedBytes / line / kPanel<T>) * kPanel<T>);
    rows = a_packed ? kStrip : std::max<int64_t>(1, kPassingBytes / line / kBlockRows) * kBlockRows;
  }
};

// c[rows, n] = from + a b for one packed block of b. Columns after the last whole panel go through `edge` [rows,
// kPanel] if they do not fill registers.
template <class T>
void pass_over(const Panels<T>& b, int64_t rows, int64_t n, Strided<T> a, T* c, int64_t c_step, From<T> from, T* edge) {
  const int64_t inside = n % kLanes<T> == 0 ? n : n / kPanel<T> * kPanel<T>, rest = n - inside;
  product(rows, b.depth, inside, T(1), a, b, 0, 0, c, c_step, from);
  if (rest == 0) return;
  const auto copy = [&](T* to, int64_t to_step, const T* p, int64_t step) {
    for (int64_t r = 0; r < rows; ++r, to += to_step, p += step)
      for_lanes<T>(rest, [&](int64_t i, auto lanes) { lanes.store(to + i, lanes.load(p + i)); });
  };
  constexpr int64_t step = kPanel<T>;
  if (from.p) copy(edge, step, from.p + inside, from.step);
  product(rows, b.depth, rest, T(1), a, b, 0, inside, edge, step, {from.p ? edge : nullptr, step});
  copy(c + inside, c_step, edge, step);
}

// Packs `rows` rows of a, whose columns have adjacent elements, as `depth` lines of kStrip elements.
template <class T, class S> Strided<T> pack_strip(Strided<S> a, int64_t rows, int64_t depth, T* to) {
  for (int64_t p = 0; p < depth; ++p)
    for_lanes<T>(rows,
                 [&](int64_t i, auto lanes) { lanes.store(to + p * kStrip + i, lanes.load(a.p + p * a.column + i)); });
  return {to, 1, kStrip};
}

// sums[rows] = the sums of a strip over its lines, added to the old contents if `add`.
template <class T> void sum_strip(const T* strip, int64_t rows, int64_t depth, T* sums, bool add) {
  for_lanes<T>(rows, [&](int64_t i, auto lanes) {
    Vec<T> sum{};
    for (int64_t p = 0; p < depth; ++p) sum += lanes.load(strip + p * kStrip + i);
    lanes.store(sums + i, add ? lanes.choose(sum + lanes.load(sums + i), lanes.load(sums + i)) : sum);
  });
}

// Computes tile `t` of c in the calling thread.
template <class T, class S> void gemm_tile(const Gemm<T, S>& g, const Tile& t) {
  const FlushSubnormals<T> flush;
  const bool a_packed = !std::is_same_v<T, S> || g.a.column != 1;
  const Blocking<T> by(t.columns, g.k, a_packed);
  const Workspace<T> memory(by.depth * by.columns + by.rows * kPanel<T> + (a_packed ? by.depth * kStrip : 0));
  T *const edge = memory.data() + by.depth * by.columns, *const strip = edge + by.rows * kPanel<T>;
  for (int64_t j = t.column; j < t.column + t.columns; j += by.columns) {
    const int64_t n = std::min(by.columns, t.column + t.columns - j);
    for (int64_t p = 0; p < g.k; p += by.depth) {
      const int64_t depth = std::min(by.depth, g.k - p);
      const Panels<T> b{memory.data(), depth, whole_lanes<T>(n)};
      const S* lines = g.b.p + p * g.b.row + j * g.b.column;
      g.b.column == 1 ? pack(b, lines, g.b.row, n) : pack_transposed(b, lines, g.b.column, n);
      for (int64_t i = t.row; i < t.row + t.rows; i += by.rows) {
        const int64_t rows = std::min(by.rows, t.row + t.rows - i);
        const Strided<S> a{g.a.p + i * g.a.row + p * g.a.column, g.a.row, g.a.column};
        const Strided<T> read = [&] {
          if constexpr (std::is_same_v<T, S>)
            if (!a_packed) return a;
          return pack_strip(a, rows, depth, strip);
        }();
        T* c = g.c + i * g.c_step + j;
        pass_over(b, rows, n, read, c, g.c_step, p == 0 ? g.from.at(i, j) : From<T>{c, g.c_step}, edge);
        if (g.sums && j == 0) sum_strip(strip, rows, depth, g.sums + i, p > 0 || g.from.p);
      }
    }
  }
}

// The product in tiles, one or a few per thread. The longer side is cut, so that threads pack little twice. If rows are
// cut, every tile packs all of b, so only many rows pay for more tiles than threads.
template <class T, class S> void gemm(const Gemm<T, S>& g) {
  if (g.m * g.n * g.k <= kWorthSharing) return gemm_tile(g, {0, g.m, 0, g.n});
  const bool by_rows = g.m >= g.n;
  const bool shared = num_threads() > 1 && g.a.column == 1;
  const int64_t share = ceil_div(g.m, num_threads()), few = shared ? share / kFewRows : 1;
  const Partition parts = by_rows ? thread_blocks(g.m, ceil_div(share, std::clamp<int64_t>(few, 1, 4)))
                                  : thread_blocks(g.n, g.n, kLanes<T>);
  parallel_for(parts, [&](int64_t begin, int64_t end) {
    gemm_tile(g, by_rows ? Tile{begin, end - begin, 0, g.n} : Tile{0, g.m, begin, end - begin});
  });
}

// The last two dimensions of a tensor. One stride is 1; the other is BLAS's leading dimension.
template <class T> Strided<T> operand(const Tensor& t) {
  const int64_t rows = t.size(-2), columns = t.size(-1), sr = t.strides().v[t.rank() - 2],
                sc = t.strides().v[t.rank() - 1];
  const bool by_rows = (sc == 1 || columns == 1) && (rows == 1 || sr >= columns);
  if (by_rows) return {t.data<T>(), rows == 1 ? std::max(sr, columns) : sr, 1};
  return {t.data<T>(), 1, columns == 1 ? std::max(sc, rows) : sc};
}

// f(c, a, b) for each matrix of a batch, with its offsets in the three tensors. The threads divide the batch if it has
// at least one matrix per thread; otherwise they share each product.
template <class F> void for_batch(const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  Dims batch, sa, sb, so;
  for (int d = 0; d < out.rank() - 2; ++d) {
    batch.push_back(out.shape().v[d]);
    sa.push_back(a.strides().v[d]);
    sb.push_back(b.strides().v[d]);
    so.push_back(out.strides().v[d]);
  }
  const Loop<3> loop(batch, {so, sa, sb});
  const int64_t each = out.size(-2) * out.size(-1) * a.size(-1);
  const bool by_batch = loop.count >= num_threads();
  const int64_t grain = by_batch ? std::max<int64_t>(1, kWorthSharing / std::max<int64_t>(1, each)) : loop.count;
  for_each_row(loop, even_blocks(loop.count, grain), [&](auto at, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      f(at[0] + i * loop.inner(0), at[1] + i * loop.inner(1), at[2] + i * loop.inner(2));
  });
}

// The packed [k, n] that was kept with the storage of t, if t begins with its storage. Null if there is none that this
// target reads.
template <class T> const PackedMatrix* kept_packed(const Tensor& t, int64_t k, int64_t n) {
  const bool pairs = t.dtype() == DType::bf16 && isa() >= Isa::avx512_bf16;  // core/cpu/bf16/gemm.h
  const auto* kept =
      t.impl().offset == 0 && !pairs ? static_cast<const PackedMatrix*>(t.impl().storage->derived()) : nullptr;
  return kept && kept->panel == kPanel<T> && kept->k == k && kept->n == n ? kept : nullptr;
}

// Converts n elements from f32 to bf16, or back.
template <class To, class From> void convert(int64_t n, const From* from, To* to) {
  for_lanes<float>(n, [&](int64_t i, auto lanes) { lanes.store(to + i, lanes.load(from + i)); });
}

// A matrix b [k, n], packed whole, for rows that pass through several products while they are in cache. bf16 is widened
// to T.
template <class T> class Packed {
 public:
  // Packs b with all threads.
  template <class S> Packed(int64_t k, int64_t n, Strided<S> b) : Packed(k, n) {
    p_ = own_.emplace(size()).data();
    fill(b);
  }
  explicit Packed(const PackedMatrix& kept) : Packed(kept.k, kept.n) {
    const bool narrow = kept.dtype == DType::bf16;
    p_ = narrow ? own_.emplace(size()).data() : static_cast<T*>(kept.memory.data());
    if (narrow) widen(static_cast<const bf16*>(kept.memory.data()));
  }
  // The transpose of a contiguous w [n, k] of type S: the packed copy that was kept with w, or packed now.
  template <class S> static Packed transposed(const Tensor& w) {
    const int64_t n = w.size(0), k = w.size(1);
    if (const PackedMatrix* kept = kept_packed<T>(w, k, n)) return Packed(*kept);
    return Packed(k, n, Strided<S>{w.data<S>(), 1, k});
  }
  // Packs the transpose of w, of type S, to be kept with w in type S.
  template <class S> static std::shared_ptr<PackedMatrix> keep(const Tensor& w) {
    Packed all(w.size(1), w.size(0));
    const auto kept = std::make_shared<PackedMatrix>(all.k_, all.n_, kPanel<T>, w.dtype(), all.size());
    void* const memory = kept->memory.data();
    all.p_ = std::is_same_v<T, S> ? static_cast<T*>(memory) : all.own_.emplace(all.size()).data();
    all.fill(Strided<S>{w.data<S>(), 1, all.k_});
    if constexpr (!std::is_same_v<T, S>) convert(all.size(), all.p_, static_cast<S*>(memory));
    return kept;
  }

  int64_t depth() const { return depth_; }  // depth of a block; the last one may have less
  // The lines [p, p + depth()) from `column` on. p must begin a block, `column` a panel.
  Panels<T> block(int64_t p, int64_t column) const {
    const int64_t depth = std::min(depth_, k_ - p);
    return {p_ + p * width_ + column * depth, depth, width_ - column};
  }
  // c[rows, columns] = from + a[rows, k] b[:, column .. column + columns]; edge [rows, kPanel] is scratch.
  void multiply(int64_t rows, int64_t column, int64_t columns, Strided<T> a, T* c, int64_t c_step, From<T> from,
                T* edge) const {
    for (int64_t p = 0; p < k_; p += depth_, a.p += depth_ * a.column, from = {c, c_step})
      pass_over(block(p, column), rows, columns, a, c, c_step, from, edge);
  }

 private:
  Packed(int64_t k, int64_t n) : k_(k), n_(n), width_(whole_lanes<T>(n)), depth_(depth_block(k, false)) {}
  int64_t size() const { return k_ * width_; }

  void widen(const bf16* kept) const {
    parallel_for(size(), 1 << 14, [&](int64_t begin, int64_t end) { convert(end - begin, kept + begin, p_ + begin); });
  }

  template <class S> void fill(Strided<S> b) const {
    const int64_t panels = ceil_div(n_, kPanel<T>), few = std::max<int64_t>(1, 16384 / (depth_ * kPanel<T>));
    parallel_for(panels * ceil_div(k_, depth_), few, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t p = i / panels * depth_, j = i % panels * kPanel<T>, columns = std::min(kPanel<T>, n_ - j);
        Panels<T> to = block(p, j);
        to.width = whole_lanes<T>(columns);
        const S* lines = b.p + p * b.row + j * b.column;
        b.column == 1 ? pack(to, lines, b.row, columns) : pack_transposed(to, lines, b.column, columns);
      }
    });
  }

  int64_t k_, n_, width_, depth_;
  T* p_ = nullptr;
  std::optional<Workspace<T>> own_;  // empty if p_ is the memory of a kept matrix
};

// Rows that one thread takes through several products together, few enough to stay in cache. `each`: multiply-adds per
// row.
inline Partition passing_rows(int64_t rows, int64_t each) {
  return rows * each <= kWorthSharing ? Partition{rows, rows > 0} : thread_blocks(rows, 22 * kBlockRows);
}

// c = from + a b for a packed b. A task multiplies some rows by some columns; tasks with the same columns follow each
// other.
template <class T> void gemm(const Gemm<T>& g, const Packed<T>& b) {
  const Partition blocks = passing_rows(g.m, g.n * g.k);
  const int64_t columns = Blocking<T>(g.n, g.k, false).columns;
  parallel_for(blocks.count * ceil_div(g.n, columns), 1, [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t block = t % blocks.count, i = blocks.begin(block), rows = blocks.begin(block + 1) - i;
      const int64_t j = t / blocks.count * columns;
      const Workspace<T> edge(rows * kPanel<T>);
      b.multiply(rows, j, std::min(columns, g.n - j), {g.a.p + i * g.a.row, g.a.row, g.a.column},
                 g.c + i * g.c_step + j, g.c_step, g.from.at(i, j), edge.data());
    }
  });
}

}  // namespace
}  // namespace isonorm
