#include "io/data/picture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/system/file.h"
#include "io/data/decoder.h"

namespace isonorm::data {
namespace {

constexpr int64_t kMostFile = int64_t{1} << 28;  // limit for the bytes of a file

// One axis of a resize: output i is the mean of the pixels [first, first + weights.size()), weighted.
struct Mean {
  int64_t first;
  std::vector<float> weights;
};
// The means for a resize from `from` to `edge` pixels, whose middle `side` are kept.
std::vector<Mean> means(int64_t from, int64_t edge, int64_t side) {
  std::vector<Mean> all;
  const double scale = static_cast<double>(from) / static_cast<double>(edge), reach = std::max(1.0, scale);
  const int64_t cut = (edge - side) / 2;
  for (int64_t i = cut; i < cut + side; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale - 0.5;  // in pixels of the picture
    const auto first = std::max<int64_t>(0, std::llround(std::ceil(centre - reach)));
    const auto last = std::min(from - 1, static_cast<int64_t>(std::llround(std::floor(centre + reach))));
    std::vector<double> weights;
    for (int64_t p = first; p <= last; ++p) weights.push_back(1 - std::abs(static_cast<double>(p) - centre) / reach);
    double sum = 0;
    for (const double w : weights) sum += w;
    all.push_back({first, {}});
    for (const double w : weights) all.back().weights.push_back(static_cast<float>(w / sum));
  }
  return all;
}

}  // namespace

Tensor read_picture(const std::string& path, std::string* warning) {
  const Scope scope(path);
  const std::vector<uint8_t> file = read_all(open_bytes(path), kMostFile);
  const auto begins = [&](std::initializer_list<uint8_t> with) {
    return file.size() >= with.size() && std::ranges::equal(with, std::span(file).first(with.size()));
  };
  const bool png = begins({0x89, 'P', 'N', 'G'});
  check(png || begins({0xff, 0xd8, 0xff}), "neither a PNG nor a JPEG file");
  std::string said;
  const Tensor image = png ? read_png(file, said) : read_jpeg(file, said);
  if (warning) *warning = said;
  return image;
}

Tensor square_of(const Tensor& image, int64_t side, const PictureFit& fit) {
  check(image.dtype() == DType::u8 && image.rank() == 3 && image.numel() > 0 && side > 0, "square_of: ", image.dtype(),
        ' ', image.shape(), " to a side of ", side, ", expected u8 [height, width, colours]");
  const int64_t edge = fit.edge == 0 ? side : fit.edge;
  check(edge >= side, "square_of: resized to ", edge, " pixels, expected at least the side of ", side);
  const int64_t height = image.size(0), width = image.size(1), colours = image.size(2);
  const int64_t least = std::min(height, width);
  const int64_t rows_from = fit.stretch ? height : least, columns_from = fit.stretch ? width : least;
  const int64_t top = (height - rows_from) / 2, left = (width - columns_from) / 2;
  const std::vector<Mean> across = means(columns_from, edge, side), down = means(rows_from, edge, side);
  const uint8_t* pixel = image.data<uint8_t>();
  std::vector<float> rows(static_cast<size_t>(rows_from * side * colours));  // resized from left to right
  float* to = rows.data();
  for (int64_t y = 0; y < rows_from; ++y)
    for (const Mean& m : across)
      for (int64_t c = 0; c < colours; ++c, ++to) {
        const uint8_t* p = pixel + ((top + y) * width + left + m.first) * colours + c;
        for (const float w : m.weights) *to += w * *p, p += colours;
      }
  const Tensor square = empty({side, side, colours}, {DType::u8});
  uint8_t* out = square.mutable_data<uint8_t>();
  for (const Mean& m : down)
    for (int64_t i = 0; i < side * colours; ++i) {
      float sum = 0;
      const float* p = &rows[static_cast<size_t>(m.first * side * colours + i)];
      for (const float w : m.weights) sum += w * *p, p += side * colours;
      *out++ = static_cast<uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  return square;
}

}  // namespace isonorm::data
