#include "lab/papers/images/zca.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/matmul.h"
#include "core/view.h"

// LAPACK: eigenvalues w [n], ascending, and eigenvectors of a symmetric matrix a [n, n] whose upper triangle is read.
// The eigenvectors replace a, column by column. OpenBLAS has the function, but its header does not declare it.
extern "C" void dsyevd_(const char* job, const char* part, const int* n, double* a, const int* lda, double* w,
                        double* work, const int* work_size, int* integers, const int* integers_size, int* info);

namespace isonorm::papers {

using namespace data;
namespace {

// Replaces the symmetric a [n, n] by its eigenvectors, one per row. Returns the eigenvalues.
std::vector<double> decompose(double* a, int64_t size) {
  const int n = static_cast<int>(size), ask = -1;
  std::vector<double> values(static_cast<size_t>(n));
  double work_size = 0;
  int integers_size = 0, info = 0;
  dsyevd_("V", "U", &n, a, &n, values.data(), &work_size, &ask, &integers_size, &ask, &info);
  const int room = static_cast<int>(work_size);
  std::vector<double> work(static_cast<size_t>(room));
  std::vector<int> integers(static_cast<size_t>(integers_size));
  dsyevd_("V", "U", &n, a, &n, values.data(), work.data(), &room, integers.data(), &integers_size, &info);
  check(info == 0, "zca: LAPACK's dsyevd of [", n, ", ", n, "] gave ", info);
  return values;
}

}  // namespace

Zca Zca::fit(const LabelledImages& set, const ZcaOptions& o) {
  check(o.eps > 0, "zca: eps is ", o.eps, ", expected above 0");
  const int64_t n = std::min(o.images, set.images.size(0));
  check(n >= 2, "zca: ", n, " images, expected 2 at least");
  const int64_t pixels = set.images.numel() / set.images.size(0);
  // LAPACK counts its workspace of 1 + 6 n + 2 n^2 numbers in 32 bits.
  check(pixels < 32000, "zca: images of ", pixels, " numbers, expected less than 32000");
  PixelScale scale = o.scale;
  scale.dtype = DType::f64;
  const auto rows_from = [&](int64_t begin) {
    const int64_t rows = std::min<int64_t>(1000, n - begin);
    return detached::reshape(slice_batch(set, begin, rows, scale).images, {rows, pixels});
  };
  std::vector<double> mean(static_cast<size_t>(pixels));
  for (int64_t begin = 0; begin < n; begin += 1000) {
    const Tensor rows = rows_from(begin);
    const double* p = rows.data<double>();
    for (int64_t i = 0; i < rows.numel(); ++i) mean[i % pixels] += p[i] / static_cast<double>(n);
  }
  const Tensor sums = empty({pixels, pixels}, {DType::f64});
  for (int64_t begin = 0; begin < n; begin += 1000) {
    const Tensor rows = rows_from(begin);
    double* p = rows.mutable_data<double>();
    for (int64_t i = 0; i < rows.numel(); ++i) p[i] -= mean[i % pixels];
    kernels::weight_gradient.on(kCpu, sums, {}, rows, rows, begin > 0);
  }
  double* vectors = sums.mutable_data<double>();
  for (int64_t i = 0; i < sums.numel(); ++i) vectors[i] /= static_cast<double>(n);
  const std::vector<double> values = decompose(vectors, pixels);
  const Tensor scaled = detached::clone(sums);
  double* s = scaled.mutable_data<double>();
  for (int64_t i = 0; i < scaled.numel(); ++i)  // rounding may make an eigenvalue of 0 slightly negative
    s[i] /= std::sqrt(std::max(0.0, values[i / pixels]) + o.eps);
  const Tensor matrix = empty({pixels, pixels}, {DType::f64});
  kernels::matmul.on(kCpu, matrix, detached::transpose(sums, 0, 1), scaled, {});
  return {detached::to(from_vector(mean, {pixels}), o.scale.dtype), detached::to(matrix, o.scale.dtype)};
}

Tensor Zca::whiten(const Tensor& images) const {
  const int64_t pixels = mean.numel(), n = images.rank() > 0 ? images.size(0) : 0;
  check(images.rank() == 4 && images.numel() == n * pixels, "zca: images ", images.shape(), " do not have the ", pixels,
        " numbers of the fit");
  check(images.dtype() == mean.dtype() && images.device() == kCpu, "zca: images of ", images.dtype(), " on ",
        images.device(), ", expected ", mean.dtype(), " on the CPU");
  const DType computed = acc_dtype(mean.dtype());
  const Tensor rows = detached::clone(detached::to(detached::reshape(images, {n, pixels}), computed));
  const Tensor out = empty(rows.shape(), rows.options()), by = detached::to(matrix, computed);
  const std::vector<double> offsets = mean.to_vector<double>();
  visit_floating(computed, "zca", [&]<class T>() {
    T* p = rows.mutable_data<T>();
    for (int64_t i = 0; i < rows.numel(); ++i) p[i] = T(p[i] - offsets[i % pixels]);
  });
  kernels::matmul.on(kCpu, out, rows, by, {});
  return detached::to(detached::reshape(out, images.shape()), mean.dtype());
}

}  // namespace isonorm::papers
