// Matrix products by OpenBLAS: one threaded call for a large product, one single-threaded call per matrix for a batch
// of small ones.
#include "core/kernels/matmul.h"

#include <cblas.h>

#include "core/parallel.h"
#include "core/strided.h"

namespace isonorm::kernels::cpu {
namespace {

void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, const float* a, blasint lda,
          const float* b, blasint ldb, float beta, float* c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, const double* a, blasint lda,
          const double* b, blasint ldb, double beta, double* c, blasint ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}

// How BLAS sees the last two dimensions of a tensor: row-major with a leading dimension, or the transpose of that.
struct Layout {
  CBLAS_TRANSPOSE transpose;
  blasint leading;
};
Layout layout_of(const Tensor& t) {
  const int64_t rows = t.size(-2), columns = t.size(-1), sr = t.strides()[t.rank() - 2], sc = t.strides()[t.rank() - 1];
  if (sc == 1 || columns == 1)
    if (rows == 1 || sr >= std::max<int64_t>(columns, 1))
      return {CblasNoTrans, static_cast<blasint>(rows == 1 ? std::max(sr, columns) : sr)};
  return {CblasTrans, static_cast<blasint>(columns == 1 ? std::max(sc, rows) : sc)};
}

template <class T> void run(const Tensor& out, const Tensor& a, const Tensor& b, T beta) {
  const int rank = out.rank();
  const int64_t m = out.size(-2), n = out.size(-1), k = a.size(-1);
  check(m < (int64_t{1} << 31) && n < (int64_t{1} << 31) && k < (int64_t{1} << 31), "matmul: shapes ", a.shape(), " x ",
        b.shape(), " pass BLAS's 32-bit sizes");
  Dims batch, sa, sb, so;
  for (int d = 0; d < rank - 2; ++d) {
    batch.push_back(out.shape()[d]);
    sa.push_back(a.strides()[d]);
    sb.push_back(b.strides()[d]);
    so.push_back(out.strides()[d]);
  }
  const T *pa = a.data<T>(), *pb = b.data<T>();
  T* po = out.mutable_data<T>();
  const Layout la = layout_of(a), lb = layout_of(b), lo = layout_of(out);
  const Loop<3> loop(batch, {so, sa, sb});
  const auto product = [&](auto at, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      gemm(la.transpose, lb.transpose, m, n, k, pa + at[1] + i * loop.inner(1), la.leading,
           pb + at[2] + i * loop.inner(2), lb.leading, beta, po + at[0] + i * loop.inner(0), lo.leading);
  };
  // A batch is shared out among the threads where that occupies them; otherwise BLAS threads each product.
  const bool by_batch = loop.count >= num_threads();
  for_each_row(loop, by_batch ? std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m * n * k)) : loop.count, product);
}

}  // namespace

void matmul(const Tensor& out, const Tensor& a, const Tensor& b, double beta) {
  if (out.numel() == 0) return;
  if (a.size(-1) == 0) {
    if (beta == 0)
      visit_floating(out.dtype(), "matmul", [&]<class T>() {
        const Loop<1> loop(out.shape(), {out.strides()});
        T* p = out.mutable_data<T>();
        for_each_row(loop, kElementGrain, [&](auto at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) p[at[0] + i * loop.inner(0)] = T(0);
        });
      });
    return;
  }
  if (out.dtype() == DType::f64)
    run<double>(out, a, b, beta);
  else
    run<float>(out, a, b, static_cast<float>(beta));
}

}  // namespace isonorm::kernels::cpu
