#include "data/augment.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/formulas/philox.h"

namespace isonorm::data {
namespace {

constexpr uint64_t kStream = 0x61756700;  // of the numbers of a seed, apart from those of other draws

}  // namespace

void augment(const Tensor& images, const Augmentation& how, double background, uint64_t seed, int64_t step) {
  const int64_t rows = images.size(0), height = images.size(1), width = images.size(2), colours = images.size(3);
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
            *image++ = inside ? before[static_cast<size_t>((from_y * width + from_x) * colours + c)] : T(background);
        }
    }
  });
}

}  // namespace isonorm::data
