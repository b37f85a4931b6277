#include "io/data/augment.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "core/formulas/philox.h"

namespace isonorm::data {
namespace {

// Separate these random numbers from all others drawn with the same seed.
constexpr uint64_t kStream = 0x61756700, kMixupStream = 0x6d697800;

// A random number from Beta(a, a): (1 + t / sqrt(2a + t^2)) / 2, where t has Student's distribution with 2a degrees of
// freedom: t = sqrt(2a (u^(-1/a) - 1)) cos(2 pi v) (Bailey, Polar generation of random variates with the
// t-distribution, 1994).
double symmetric_beta(double a, const PhiloxBlock& draw) {
  const double u = 1 - unit_interval(draw.wide(0));
  const double cosine = std::cos(2 * std::numbers::pi * unit_interval(draw.wide(1)));
  const double over = std::expm1(std::abs(std::log(u)) / a) * cosine * cosine;  // t^2 / 2a, 0 to infinity
  return 0.5 + std::copysign(0.5 / std::sqrt(1 + 1 / over), cosine);
}

// Replaces row i by share x row i + (1 - share) x row i + 1, and mixes the last row with the first.
template <class T> void mix_rows(const Tensor& x, double share) {
  const int64_t rows = x.size(0), size = rows == 0 ? 0 : x.numel() / rows;
  T* row = x.mutable_data<T>();
  const std::vector<T> first(row, row + size);
  for (int64_t r = 0; r < rows; ++r, row += size) {
    const T* next = r + 1 < rows ? row + size : first.data();
    for (int64_t i = 0; i < size; ++i)
      row[i] = T(share * static_cast<double>(row[i]) + (1 - share) * static_cast<double>(next[i]));
  }
}

}  // namespace

void augment(const Tensor& images, const Augmentation& how, const std::vector<double>& background, uint64_t seed,
             int64_t step) {
  const int64_t rows = images.size(0), height = images.size(1), width = images.size(2), colours = images.size(3);
  const int64_t numbers = std::ssize(background);
  check(numbers == 1 || numbers == colours, "augment: ", numbers, " numbers of the background, images have ", colours,
        " colours");
  check(how.crop >= 0 && how.crop < height && how.crop < width, "augment: a crop of ", how.crop,
        " pixels of images of ", height, " x ", width);
  if (!how.any()) return;
  visit_floating(images.dtype(), "augment", [&]<class T>() {
    std::vector<T> before(static_cast<size_t>(height * width * colours));
    for (int64_t r = 0; r < rows; ++r) {
      T* image = images.mutable_data<T>() + r * std::ssize(before);
      std::copy_n(image, before.size(), before.begin());
      const PhiloxBlock draw = philox(seed, static_cast<uint64_t>(step * rows + r), kStream);
      const auto shift = [&](uint32_t word) { return static_cast<int64_t>(word % (2 * how.crop + 1)) - how.crop; };
      const int64_t down = shift(draw.word[0]), right = shift(draw.word[1]);
      const bool mirrored = how.flip && draw.word[2] % 2 == 1;
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t from_y = y - down, from_x = (mirrored ? width - 1 - x : x) - right;
          const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
          for (int64_t c = 0; c < colours; ++c)
            *image++ = inside ? before[static_cast<size_t>((from_y * width + from_x) * colours + c)]
                              : T(background[static_cast<size_t>(c % numbers)]);
        }
    }
  });
}

Tensor mix(const Tensor& images, const Tensor& labels, const Mixup& how, uint64_t seed, int64_t step) {
  check(how.alpha > 0 && std::isfinite(how.alpha), "mix: alpha is ", how.alpha, ", expected a positive number");
  const int64_t rows = images.size(0);
  const Tensor targets = empty({rows, how.classes}, {images.dtype()});
  const double share = symmetric_beta(how.alpha, philox(seed, static_cast<uint64_t>(step), kMixupStream));
  visit_floating(images.dtype(), "mix", [&]<class T>() {
    T* target = targets.mutable_data<T>();
    std::fill_n(target, targets.numel(), T(0));
    for (int64_t r = 0; r < rows; ++r, target += how.classes) {
      const int64_t label = labels.data<int64_t>()[r];
      check(label >= 0 && label < how.classes, "mix: label ", label, " of ", how.classes, " classes");
      target[label] = T(1);
    }
    mix_rows<T>(images, share), mix_rows<T>(targets, share);
  });
  return targets;
}

}  // namespace isonorm::data
