// ZCA whitening checked by naive loops: (covariance + eps) times the square of the matrix is the identity.
#include "lab/papers/images/zca.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::papers;
using Catch::Matchers::Contains;

namespace {

// Random images with correlated neighbouring pixels. The first pixel is always 7.
data::LabelledImages made_images(int64_t n, Dims shape) {
  std::mt19937_64 random(3);
  shape = Dims{n, shape[0], shape[1], shape[2]};
  const int64_t each = shape[1] * shape[2] * shape[3];
  std::vector<uint8_t> v(static_cast<size_t>(n * each));
  for (int64_t i = 0; i < n; ++i) {
    int level = static_cast<int>(random() % 256);
    for (int64_t k = 0; k < each; ++k) {
      level = std::clamp(level + static_cast<int>(random() % 61) - 30, 0, 255);
      v[i * each + k] = k == 0 ? 7 : static_cast<uint8_t>(level);
    }
  }
  return {from_vector(v, shape), from_vector(std::vector<int64_t>(static_cast<size_t>(n)), {n})};
}

using Matrix = std::vector<std::vector<long double>>;
Matrix times(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<long double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a.size(); ++j)
      for (size_t k = 0; k < a.size(); ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}

}  // namespace

TEST_CASE("the ZCA matrix is the inverse root of the covariance, and whitens") {
  constexpr int64_t n = 1500, pixels = 24;  // more images than fit a block
  const data::LabelledImages set = made_images(n, {4, 3, 2});
  const ZcaOptions o{.eps = 1e-3, .scale = {.mean = {0.4}, .std = {0.3}, .dtype = DType::f64}};
  const Zca zca = Zca::fit(set, o);
  const std::vector<uint8_t> levels = set.images.to_vector<uint8_t>();
  std::vector<std::vector<long double>> x(n, std::vector<long double>(pixels));
  std::vector<long double> mean(pixels);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < pixels; ++k) {
      x[i][k] = (levels[i * pixels + k] / 255.0L - 0.4L) / 0.3L;
      mean[k] += x[i][k] / n;
    }
  Matrix c(pixels, std::vector<long double>(pixels)), w = c;
  for (int64_t a = 0; a < pixels; ++a)
    for (int64_t b = 0; b < pixels; ++b) {
      for (int64_t i = 0; i < n; ++i) c[a][b] += (x[i][a] - mean[a]) * (x[i][b] - mean[b]) / n;
      w[a][b] = zca.matrix.to_vector<double>()[a * pixels + b];
      if (a == b) c[a][b] += 1e-3L;
    }
  // Entries of w are at most 1/sqrt(eps) = 32, and the covariance's condition number is below 2e4; sums of 24 such
  // terms are rounded.
  const Matrix one = times(c, times(w, w));
  for (int64_t a = 0; a < pixels; ++a) {
    CHECK(std::abs(zca.mean.to_vector<double>()[a] - static_cast<double>(mean[a])) < 1e-12);
    for (int64_t b = 0; b < pixels; ++b) {
      CHECK(std::abs(static_cast<double>(one[a][b]) - (a == b)) < 2e4 * 24 * 0x1p-50);
      CHECK(std::abs(static_cast<double>(w[a][b] - w[b][a])) < 1e-11);
    }
  }
  CHECK(w[1][1] > 1);  // the positive root

  const data::Batch batch = data::slice_batch(set, 5, 3, o.scale);
  const Tensor white = zca.whiten(batch.images);
  CHECK(white.shape() == batch.images.shape());
  const std::vector<double> got = white.to_vector<double>();
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t b = 0; b < pixels; ++b) {
      long double sum = 0;
      for (int64_t a = 0; a < pixels; ++a) sum += (x[5 + i][a] - mean[a]) * w[a][b];
      CHECK(got[i * pixels + b] == Approx(static_cast<double>(sum)).epsilon(1e-10).margin(1e-10));
    }
}

TEST_CASE("ZCA takes as many images as asked for, in f32 too, and refuses what does not fit") {
  const data::LabelledImages set = made_images(30, {2, 2, 1}), few = made_images(10, {2, 2, 1});
  const Zca part = Zca::fit(set, {.eps = 0.1, .images = 10}), all = Zca::fit(few, {.eps = 0.1});
  CHECK(part.matrix.to_vector<float>() == all.matrix.to_vector<float>());
  CHECK(part.whiten(data::slice_batch(set, 0, 4).images).dtype() == DType::f32);
  CHECK_THROWS_WITH(Zca::fit(set, {.eps = 0}), "zca: eps is 0, expected above 0");
  CHECK_THROWS_WITH(Zca::fit(set, {.images = 1}), Contains("1 images"));
  CHECK_THROWS_WITH(part.whiten(empty({2, 3, 3, 1})), Contains("4 numbers"));
  CHECK_THROWS_WITH(part.whiten(empty({2, 2, 2, 1}, {DType::f64})), Contains("f64"));
}
