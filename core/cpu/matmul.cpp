// Matrix products: by our own kernels from AVX2 on, otherwise by OpenBLAS. Our threads share a large product, even if
// OpenBLAS computes it. In a batch of small products, one thread computes each.
#include "core/kernels/matmul.h"

#include <cblas.h>

#include "core/cpu/bf16/products.h"
#include "core/cpu/target.h"
#include "core/cpu/thin.h"
#include "core/system/blas.h"

namespace isonorm::kernels::cpu {
namespace {

void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, const float* a, blasint lda,
          const float* b, blasint ldb, float beta, float* c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, const double* a, blasint lda,
          const double* b, blasint ldb, double beta, double* c, blasint ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}

template <class T> void tile_by_blas(const Gemm<T>& g) {
  if (g.from.p && g.from.p != g.c)
    for (int64_t r = 0; r < g.m; ++r) std::copy_n(g.from.p + r * g.from.step, g.n, g.c + r * g.c_step);
  const BlasCall call;
  const auto transpose = [](const Strided<T>& s) { return s.column == 1 ? CblasNoTrans : CblasTrans; };
  const auto leading = [](const Strided<T>& s) { return static_cast<blasint>(s.column == 1 ? s.row : s.column); };
  blas(transpose(g.a), transpose(g.b), static_cast<blasint>(g.m), static_cast<blasint>(g.n), static_cast<blasint>(g.k),
       g.a.p, leading(g.a), g.b.p, leading(g.b), T(g.from.p ? 1 : 0), g.c, static_cast<blasint>(g.c_step));
}

// Divides the longer side into a few blocks that depend only on the shape.
template <class T> void by_blas(const Gemm<T>& g) {
  const bool by_rows = g.m >= g.n;
  const int64_t length = by_rows ? g.m : g.n, each = by_rows ? g.n * g.k : g.m * g.k;
  const int64_t grain = std::max(ceil_div(length, 8), ceil_div(kWorthSharing, each));
  parallel_for(even_blocks(length, grain, kLanes<T>), [&](int64_t begin, int64_t end) {
    const int64_t row = by_rows ? begin : 0, column = by_rows ? 0 : begin;
    Gemm<T> part = g;
    (by_rows ? part.m : part.n) = end - begin;
    part.a.p += row * g.a.row;
    part.b.p += column * g.b.column;
    part.c += row * g.c_step + column;
    part.from = g.from.at(row, column);
    tile_by_blas(part);
  });
}

bool is_own() { return kTarget != Isa::base && !openblas_asked(); }

template <class T> void multiply(const Gemm<T>& g) {
  if (!is_own()) return by_blas(g);
  pays_for_packing(g) ? gemm(g) : thin_gemm(g);
}

template <class T> void run(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from) {
  const int64_t m = out.size(-2), n = out.size(-1), k = a.size(-1);
  T* c = out.mutable_data<T>();
  const T* base = from.defined() ? from.data<T>() : nullptr;
  const bool onto_itself = base == c;
  const Gemm<T> whole{m, n, k, operand<T>(a), operand<T>(b), c, n, {base, onto_itself ? n : 0}};
  check(std::max({m, n, k, whole.a.row, whole.a.column, whole.b.row, whole.b.column}) < (int64_t{1} << 31),
        "matmul: shapes ", a.shape(), " x ", b.shape(), " pass BLAS's 32-bit sizes");
  if (is_own() && pays_for_packing(whole) && out.rank() == 2 && whole.a.column == 1 && whole.b.row == 1 &&
      whole.b.column == k)
    if (const PackedMatrix* kept = kept_packed<T>(b, k, n)) return gemm(whole, Packed<T>(*kept));
  for_batch(out, a, b, [&](int64_t to, int64_t left, int64_t right) {
    Gemm<T> g = whole;
    g.c += to;
    g.a.p += left;
    g.b.p += right;
    if (onto_itself) g.from.p = g.c;
    multiply(g);
  });
}

// A few bf16 rows times a weight: f32 sums, rounded once.
void run_few_rows(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from) {
  const int64_t m = out.size(-2), n = out.size(-1), k = a.size(-1), added = from.defined() ? from.numel() : 0;
  const Workspace<float> memory(m * (k + n) + added);
  float *const x = memory.data(), *const y = x + m * k, *const base = added > 0 ? y + m * n : nullptr;
  std::copy_n(a.data<bf16>(), m * k, x);
  if (base) std::copy_n(from.data<bf16>(), added, base);
  few_rows<float, bf16>({m, n, k, x, k, b.data<bf16>(), b.strides().v[1], y, n, 1, {base, added > n ? n : 0, 1}});
  std::copy_n(y, m * n, out.mutable_data<bf16>());
}

// bf16 rows times one matrix: f32 sums, rounded once. A task widens some rows and multiplies them by some columns.
void run_widened(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from) {
  const int64_t m = out.size(0), n = out.size(1), k = a.size(1);
  const bf16 *x = a.data<bf16>(), *base = from.defined() ? from.data<bf16>() : nullptr;
  bf16* const y = out.mutable_data<bf16>();
  const Strided<bf16> right = operand<bf16>(b);
  const PackedMatrix* kept = right.row == 1 && right.column == k ? kept_packed<float>(b, k, n) : nullptr;
  const Packed<float> packed = kept ? Packed<float>(*kept) : Packed<float>(k, n, right);
  const Partition blocks = passing_rows(m, n * k);
  const int64_t columns = Blocking<float>(n, k, false).columns;
  parallel_for(blocks.count * ceil_div(n, columns), 1, [&](int64_t begin, int64_t end) {
    const FlushSubnormals<float> flush;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t block = t % blocks.count, i = blocks.begin(block), rows = blocks.begin(block + 1) - i;
      const int64_t j = t / blocks.count * columns, count = std::min(columns, n - j), depth = packed.depth();
      const Workspace<float> memory(rows * (depth + count + kPanel<float>)+count);
      float *const wide = memory.data(), *const sums = wide + rows * depth, *const edge = sums + rows * count;
      float* const shift = edge + rows * kPanel<float>;
      bf16* const to = y + i * n + j;
      From<float> before;
      if (base == y) {
        for (int64_t r = 0; r < rows; ++r) convert(count, to + r * n, sums + r * count);
        before = {sums, count};
      } else if (base) {
        convert(count, base + j, shift);
        before = {shift, 0};
      }
      for (int64_t p = 0; p < k; p += depth, before = {sums, count}) {
        const int64_t lines = std::min(depth, k - p);
        for (int64_t r = 0; r < rows; ++r) convert(lines, x + (i + r) * k + p, wide + r * lines);
        pass_over(packed.block(p, j), rows, count, Strided<float>{wide, lines, 1}, sums, count, before, edge);
      }
      for (int64_t r = 0; r < rows; ++r) convert(count, sums + r * count, to + r * n);
    }
  });
}

// The product over a depth of 0: only `from`.
template <class T> void without_depth(const Tensor& out, const Tensor& from) {
  T* c = out.mutable_data<T>();
  const int64_t n = out.size(-1);
  const T* base = from.defined() ? from.data<T>() : nullptr;
  if (base != c)
    for (int64_t i = 0; i < out.numel(); ++i) c[i] = base ? base[i % n] : T(0);
}

// sums [m] = the column sums of d [rows, m], added to the old contents if `add`, in the same blocks of rows as in
// gemm().
template <class T, class S> void sum_columns(const S* d, int64_t rows, int64_t m, T* sums, bool add) {
  constexpr int64_t wide = 64;
  if (!add) std::fill_n(sums, m, T(0));
  const int64_t block = depth_block(std::max<int64_t>(1, rows), true);
  const int64_t few = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows * wide));
  parallel_for(ceil_div(m, wide), few, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * wide; begin < std::min(m, last * wide); begin += wide) {
      const int64_t end = std::min(m, begin + wide);
      for (int64_t p = 0; p < rows; p += block) {
        T partial[wide] = {};
        for (int64_t r = p; r < std::min(rows, p + block); ++r)
          for (int64_t i = begin; i < end; ++i) partial[i - begin] += T(d[r * m + i]);
        for (int64_t i = begin; i < end; ++i) sums[i] += partial[i - begin];
      }
    }
  });
}

template <class T, class S>
void run_weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add) {
  constexpr bool narrow = !std::is_same_v<T, S>;
  const int64_t rows = dy.size(0), m = dy.size(1), n = x.size(1);
  const S* d = dy.data<S>();
  T* sums = db.defined() ? db.mutable_data<T>() : nullptr;
  if (dw.defined()) {
    T* c = dw.mutable_data<T>();
    // A single row of f32 or f64 is contiguous, so it has the depth blocks of linear (depth_block()).
    const Strided<S> dy_transposed = m == 1 && !narrow ? Strided<S>{d, rows, 1} : Strided<S>{d, 1, m};
    Gemm<T, S> g{m, n, rows, dy_transposed, {x.data<S>(), n, 1}, c, n, {add ? c : nullptr, n}};
    if (rows > 0 && (narrow ? n > 0 : is_own() && pays_for_packing(g))) {
      g.sums = sums;
      return gemm(g);
    }
    if constexpr (!narrow)
      if (dw.numel() > 0 && rows > 0) multiply(g);
    if (rows == 0) without_depth<T>(dw, add ? dw : Tensor());
  }
  if (sums) sum_columns(d, rows, m, sums, add);
}

void run_weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add) {
  visit_floating(dy.dtype(), "weight_gradient",
                 [&]<class S>() { run_weight_gradient<acc_t<S>, S>(dw, db, dy, x, add); });
}

std::shared_ptr<PackedMatrix> packed(const Tensor& w) {
  return visit_floating(w.dtype(), "keep_packed", [&]<class S>() { return Packed<acc_t<S>>::template keep<S>(w); });
}

}  // namespace

template <Isa I> void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from) {
  if (out.numel() == 0) return;
  if (a.size(-1) == 0) return visit_floating(out.dtype(), "matmul", [&]<class T>() { without_depth<T>(out, from); });
  if (reads_once(a, b)) return run_few_rows(out, a, b, from);
  if constexpr (kTarget == Isa::avx512)
    if (out.dtype() == DType::bf16 && isa() >= Isa::avx512_bf16) return matmul_bf16(out, a, b, from);
  if (out.dtype() == DType::bf16) return run_widened(out, a, b, from);
  out.dtype() == DType::f64 ? run<double>(out, a, b, from) : run<float>(out, a, b, from);
}

template <Isa I> void weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add) {
  if constexpr (kTarget == Isa::avx512)
    if (dy.dtype() == DType::bf16 && isa() >= Isa::avx512_bf16) return weight_gradient_bf16(dw, db, dy, x, add);
  run_weight_gradient(dw, db, dy, x, add);
}

template <Isa I> void keep_packed(const Tensor& w) {
  if (kTarget == Isa::base) return;
  if (w.dtype() == DType::bf16 && isa() >= Isa::avx512_bf16) {
    if constexpr (kTarget == Isa::avx512) keep_packed_bf16(w);
    return;
  }
  w.impl().storage->keep(packed(w));
}

template void matmul<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void weight_gradient<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool);
template void keep_packed<kTarget>(const Tensor&);

}  // namespace isonorm::kernels::cpu
