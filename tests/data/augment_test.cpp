// Shifted and mirrored images against all that a plain crop of a padded image can be; mixed ones against the formula.
#include "io/data/augment.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/ops/create.h"
#include "io/data/loader.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::data;
using Catch::Matchers::Contains;

namespace {

constexpr int kHeight = 4, kWidth = 5, kColours = 2, kBorder = -7;
using Image = std::vector<double>;  // [height, width, colours]

// The window at (top, left) of an image with a border of `crop` pixels, mirrored behind that.
Image cropped(const Image& image, int crop, int top, int left, bool mirrored) {
  Image window;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < kColours; ++c) {
        const int row = y + top - crop, column = (mirrored ? kWidth - 1 - x : x) + left - crop;
        const bool border = row < 0 || row >= kHeight || column < 0 || column >= kWidth;
        window.push_back(border ? kBorder : image[static_cast<size_t>((row * kWidth + column) * kColours + c)]);
      }
  return window;
}

Tensor numbered(int64_t rows) {
  Image values;
  for (int64_t i = 0; i < rows * kHeight * kWidth * kColours; ++i) values.push_back(static_cast<double>(i));
  return from_vector(values, {rows, kHeight, kWidth, kColours});
}

}  // namespace

TEST_CASE("augment: each image is a window of itself with a border, mirrored or not, and all come about as often") {
  constexpr int kRows = 4000;
  for (const auto& [crop, flip] : {std::pair{0, true}, {2, false}, {2, true}}) {
    const Tensor images = numbered(kRows);
    const Image before = images.to_vector<double>();
    augment(images, {.crop = crop, .flip = flip}, {kBorder}, 3, 17);
    const Image after = images.to_vector<double>();
    constexpr size_t kSize = kHeight * kWidth * kColours;
    std::map<std::tuple<int, int, bool>, int> seen;
    for (size_t r = 0; r < kRows; ++r) {
      const Image own(before.begin() + r * kSize, before.begin() + (r + 1) * kSize);
      const Image got(after.begin() + r * kSize, after.begin() + (r + 1) * kSize);
      int found = 0;
      for (int top = 0; top <= 2 * crop; ++top)
        for (int left = 0; left <= 2 * crop; ++left)
          for (const bool mirrored : {false, true})
            if ((flip || !mirrored) && cropped(own, crop, top, left, mirrored) == got)
              ++seen[{top, left, mirrored}], ++found;
      REQUIRE(found == 1);
    }
    const double kinds = (2 * crop + 1) * (2 * crop + 1) * (flip ? 2 : 1), mean = kRows / kinds;
    CHECK(static_cast<double>(seen.size()) == kinds);
    for (const auto& [kind, count] : seen) CHECK(std::abs(count - mean) < 5 * std::sqrt(mean));  // five deviations
  }
}

TEST_CASE("augment: changes depend on seed, step and row; a resumed loader gives the same batches") {
  const auto after = [](uint64_t seed, int64_t step) {
    const Tensor images = numbered(50);
    augment(images, {.crop = 1, .flip = true}, {kBorder}, seed, step);
    return images.to_vector<double>();
  };
  CHECK(after(1, 2) == after(1, 2));
  CHECK(after(1, 2) != after(1, 3));
  CHECK(after(1, 2) != after(2, 2));
  CHECK_THROWS_WITH(augment(numbered(1), {.crop = 4}, {0}, 1, 1), Contains("a crop of 4 pixels of images of 4 x 5"));

  std::vector<uint8_t> pixels(20 * 6 * 6);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  const LabelledImages set{from_vector(pixels, {20, 6, 6}), from_vector(std::vector<int64_t>(20, 1), {20})};
  const LoaderOptions options{.rows = 4, .seed = 5, .augment = {.crop = 2, .flip = true}, .prefetch = 0};
  Loader whole(set, options), resumed(set, options), plain(set, {.rows = 4, .seed = 5, .prefetch = 0});
  for (int step = 0; step < 7; ++step) whole.next();
  resumed.seek(7);
  const auto images = whole.next().images.to_vector<float>();
  CHECK(resumed.next().images.to_vector<float>() == images);
  CHECK(plain.batch(7).images.to_vector<float>() != images);
  const double border = -kFashionMnistMean / kFashionMnistStd;
  CHECK(std::ranges::count(images, static_cast<float>(border)) > 10);
}

TEST_CASE("mix: images and targets are lambda times their own plus 1 - lambda times the next one's") {
  constexpr int64_t kRows = 5, kClasses = 3;
  const std::vector<int64_t> labels = {2, 0, 1, 1, 0};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor images = numbered(kRows).to(dtype);
    const Image before = images.to(DType::f64).to_vector<double>();
    const Tensor targets = mix(images, from_vector(labels, {kRows}), {.alpha = 1, .classes = kClasses}, 1, 3);
    REQUIRE((targets.shape() == Dims{kRows, kClasses} && targets.dtype() == dtype));
    const Image after = images.to(DType::f64).to_vector<double>(), q = targets.to(DType::f64).to_vector<double>();
    const double share = q[2], eps = epsilon(dtype);
    CHECK((share > 0.01 && share < 0.99));
    const size_t size = before.size() / kRows;
    for (size_t i = 0; i < before.size(); ++i) {
      const double other = before[(i + size) % before.size()];
      // The share that the targets show is rounded, too.
      CHECK(std::abs(after[i] - (share * before[i] + (1 - share) * other)) <= 2 * eps * (before[i] + other + 1));
    }
    for (size_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kClasses; ++c) {
        const double expected = share * (labels[r] == c) + (1 - share) * (labels[(r + 1) % kRows] == c);
        CHECK(std::abs(q[r * kClasses + static_cast<size_t>(c)] - expected) <= eps);
      }
  }
}

TEST_CASE("mix: lambda is from Beta(alpha, alpha), by seed and step alone") {
  const auto share_of = [](double alpha, uint64_t seed, int64_t step) {
    const Tensor labels = from_vector(std::vector<int64_t>{0, 1}, {2});
    return mix(zeros({2, 1}, {DType::f64}), labels, {.alpha = alpha, .classes = 2}, seed, step).data<double>()[0];
  };
  CHECK(share_of(1, 2, 3) == share_of(1, 2, 3));
  CHECK(share_of(1, 2, 3) != share_of(1, 2, 4));
  CHECK(share_of(1, 2, 3) != share_of(1, 3, 3));
  constexpr int kDraws = 4000;
  for (const double alpha : {1e-3, 0.2, 0.5, 1.0, 3.0, 1e3}) {
    std::vector<double> drawn;
    for (int step = 0; step < kDraws; ++step) drawn.push_back(share_of(alpha, 1, step));
    std::ranges::sort(drawn);
    CHECK((drawn.front() >= 0 && drawn.back() <= 1));
    double squares = 0;
    for (const double x : drawn) squares += (2 * x - 1) * (2 * x - 1) / kDraws;
    CHECK(std::abs(squares - 1 / (2 * alpha + 1)) < 5 / std::sqrt(kDraws) / (2 * alpha + 1) * 2);  // E (2 x - 1)^2
    // Distribution functions that are elementary; Kolmogorov's distance is above 1.95 / sqrt(n) once in a thousand
    // times.
    for (size_t i = 0; i < drawn.size(); ++i) {
      const double x = drawn[i], at = (static_cast<double>(i) + 0.5) / kDraws;
      if (alpha == 0.5) REQUIRE(std::abs(at - 2 / M_PI * std::asin(std::sqrt(x))) < 1.95 / std::sqrt(kDraws));
      if (alpha == 1) REQUIRE(std::abs(at - x) < 1.95 / std::sqrt(kDraws));
      if (alpha == 3) REQUIRE(std::abs(at - x * x * x * (10 - 15 * x + 6 * x * x)) < 1.95 / std::sqrt(kDraws));
    }
  }
}

TEST_CASE("mix: what cannot be is refused; a loader mixes batches of any step alike, and none where alpha is 0") {
  const Tensor labels = from_vector(std::vector<int64_t>{0, 3}, {2});
  CHECK_THROWS_WITH(mix(zeros({2, 1}), labels, {.alpha = 1, .classes = 3}, 1, 1), Contains("label 3 of 3 classes"));
  for (const double alpha : {0.0, -1.0, HUGE_VAL, std::nan("")})
    CHECK_THROWS_WITH(mix(zeros({2, 1}), labels, {.alpha = alpha, .classes = 4}, 1, 1), Contains("mix: alpha is "));

  std::vector<uint8_t> pixels(20 * 6 * 6);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i * 7);
  std::vector<int64_t> classes(20);
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<int64_t>(i % 4);
  const LabelledImages set{from_vector(pixels, {20, 6, 6}), from_vector(classes, {20})};
  LoaderOptions options{.rows = 5, .seed = 5, .augment = {.crop = 1}, .mixup = {0.4, 4}, .prefetch = 0};
  Loader whole(set, options), resumed(set, options);
  for (int step = 0; step < 6; ++step) whole.next();
  resumed.seek(6);
  const Batch a = whole.next(), b = resumed.next(), any = whole.batch(6);
  CHECK(a.labels.shape() == Dims{5, 4});
  for (const Batch& other : {b, any}) {
    CHECK(a.images.to_vector<float>() == other.images.to_vector<float>());
    CHECK(a.labels.to_vector<float>() == other.labels.to_vector<float>());
  }
  options.mixup.alpha = 0;
  const Batch plain = Loader(set, options).batch(6);
  CHECK(plain.labels.dtype() == DType::i64);
  CHECK(plain.images.to_vector<float>() != a.images.to_vector<float>());
}
