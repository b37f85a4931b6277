// Shifted and mirrored images against all that a plain crop of a padded image can be.
#include "data/augment.h"

#include <map>

#include "data/loader.h"
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
    augment(images, {.crop = crop, .flip = flip}, kBorder, 3, 17);
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

TEST_CASE("augment: what happens depends on seed, step and row; a loader that goes on gives what it would have") {
  const auto after = [](uint64_t seed, int64_t step) {
    const Tensor images = numbered(50);
    augment(images, {.crop = 1, .flip = true}, kBorder, seed, step);
    return images.to_vector<double>();
  };
  CHECK(after(1, 2) == after(1, 2));
  CHECK(after(1, 2) != after(1, 3));
  CHECK(after(1, 2) != after(2, 2));
  CHECK_THROWS_WITH(augment(numbered(1), {.crop = 4}, 0, 1, 1), Contains("a crop of 4 pixels of images of 4 x 5"));

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
