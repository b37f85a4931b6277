// Products c = from + a b of f32 or f64 with few rows or few columns. With few rows, packing b does not pay: it costs
// as much as some ten rows of the product. With few columns, the registers of gemm(), which hold columns, are not
// filled.
#pragma once

#include "core/cpu/few_rows.h"

namespace isonorm {
namespace {

constexpr int64_t kFewestRows = 16;    // fewest rows of a that pay for packing b
constexpr int64_t kFewestColumns = 8;  // fewest columns that fill registers
constexpr int64_t kShortestDot = 64;   // least depth that pays for adding a register's lanes

// Computes the product if a has few rows. The elements of a row of b are adjacent and are read in place. The result has
// the same bits as gemm()'s.
template <class T> void few_rows_of_matrix(const Gemm<T>& g) {
  const int64_t most = std::min(g.k, depth_block(g.k, g.a.column != 1));
  const bool alone = g.m * g.n * g.k <= kWorthSharing;
  parallel_for(alone ? Partition{g.n, 1} : thread_blocks(g.n, 256, kPanel<T>), [&](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    const int64_t n = end - begin, inside = n / kLanes<T> * kLanes<T>;
    const Workspace<T> memory(most * kLanes<T> + g.m * kPanel<T>);
    T *const c = g.c + begin, *const edge = memory.data() + most * kLanes<T>;
    for (int64_t p = 0; p < g.k; p += most) {
      const int64_t depth = std::min(most, g.k - p);
      const Strided<T> a{g.a.p + p * g.a.column, g.a.row, g.a.column};
      const T* const b = g.b.p + p * g.b.row + begin;
      const From<T> from = p == 0 ? g.from.at(0, begin) : From<T>{c, g.c_step};
      product(g.m, depth, inside, T(1), a, Unpacked<T>{b, g.b.row}, 0, 0, c, g.c_step, from);
      if (n == inside) continue;
      const Panels<T> rest{memory.data(), depth, kLanes<T>};
      pack(rest, b + inside, g.b.row, n - inside);
      pass_over(rest, g.m, n - inside, a, c + inside, g.c_step, from.at(0, inside), edge);
    }
  });
}

// Computes the product if b has few columns: c^T = b^T a^T has few rows. If the elements of a row of a are adjacent,
// a^T has the layout of a weight, and gemm() packs it.
template <class T> void few_columns_by_rows(const Gemm<T>& g) {
  const Workspace<T> memory(g.n * g.m);
  const T* const y = memory.data();
  const Gemm<T> transposed{g.n,           g.m, g.k, {g.b.p, g.b.column, g.b.row}, {g.a.p, g.a.column, g.a.row},
                           memory.data(), g.m};
  g.a.column == 1 ? gemm(transposed) : few_rows_of_matrix(transposed);
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      const From<T> from = g.from.at(i, j);
      g.c[i * g.c_step + j] = from.p ? *from.p + y[j * g.m + i] : y[j * g.m + i];
    }
}

// Computes the product if b has few columns and the elements of a row of a are adjacent. If the elements of a column of
// b are not adjacent, the columns are copied first.
template <class T> void few_columns_by_dots(const Gemm<T>& g) {
  const bool lies_so = g.b.row == 1;
  const Workspace<T> memory(lies_so ? 0 : g.n * g.k);
  T* const columns = memory.data();
  for (int64_t p = 0; !lies_so && p < g.k; ++p)
    for (int64_t j = 0; j < g.n; ++j) columns[j * g.k + p] = g.b.p[p * g.b.row + j];
  few_rows<T, T>({g.n,
                  g.m,
                  g.k,
                  lies_so ? g.b.p : columns,
                  lies_so ? g.b.column : g.k,
                  g.a.p,
                  g.a.row,
                  g.c,
                  1,
                  g.c_step,
                  {g.from.p, 1, g.from.step}});
}

// Returns true if gemm() should compute the product. gemm() also computes the sums of a's rows (Gemm::sums);
// thin_gemm() does not.
template <class T, class S> bool pays_for_packing(const Gemm<T, S>& g) {
  return g.n >= kFewestColumns && (g.m >= kFewestRows || g.b.column != 1);
}

// Computes a product of f32 or f64 for which pays_for_packing() is false.
template <class T> void thin_gemm(const Gemm<T>& g) {
  if (g.n >= kFewestColumns) return few_rows_of_matrix(g);
  g.a.column == 1 && g.k >= kShortestDot ? few_columns_by_dots(g) : few_columns_by_rows(g);
}

}  // namespace
}  // namespace isonorm
