// Rows of ops that resize images.
#include <algorithm>
#include <cmath>

#include "autograd/ops/images.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

constexpr Tolerance kOnce{tolerance::reduction.constant, Scale::terms, true};

// The image with pixel sum_ij rows(h, i) columns(w, j) x[n, i, j, c] at (h, w).
template <class Rows, class Columns>
Array weighted(const Array& x, int64_t height, int64_t width, Rows rows, Columns columns) {
  return tabulate({x.shape[0], height, width, x.shape[3]}, [&](const Dims& at) {
    long double sum = 0;
    for (int64_t i = 0; i < x.shape[1]; ++i)
      for (int64_t j = 0; j < x.shape[2]; ++j)
        if (const double share = rows(at[1], i) * columns(at[2], j); share != 0)
          sum += static_cast<long double>(x.at({at[0], i, j, at[3]})) * share;
    return static_cast<double>(sum);
  });
}

OpCase adaptive_case() {
  OpCase op = row_of("Images", "adaptive_avg_pool2d", "(x, Size2 size)",
                     "the mean of pixels floor(i s / o), ..., ceil((i + 1) s / o) - 1 in each direction", kOnce);
  const std::vector<std::pair<Dims, Size2>> cases = {
      {{1, 1, 1, 1}, 1},       {{2, 3, 4, 2}, 1},       {{1, 6, 4, 3}, {3, 2}},    {{1, 5, 7, 2}, {2, 3}},
      {{2, 7, 5, 1}, {3, 5}},  {{1, 2, 3, 2}, {4, 5}},  {{1, 1, 3, 2}, {2, 3}},    {{1, 5, 4, 9}, {3, 4}},
      {{2, 8, 6, 2}, {4, 4}},  {{1, 9, 9, 1}, 7},       {{1, 4, 4, 17}, {3, 1}},   {{1, 10, 3, 2}, {7, 2}},
      {{3, 2, 2, 2}, 2},       {{1, 3, 8, 2}, {2, 8}},  {{0, 5, 5, 2}, 2},         {{2, 5, 5, 0}, 2},
      {{1, 13, 2, 1}, {5, 2}}, {{1, 4, 11, 2}, {1, 4}}, {{2, 6, 5, 3}, {6, 2}},    {{1, 7, 7, 2}, {1, 7}},
      {{1, 3, 3, 3}, {2, 2}},  {{1, 6, 6, 2}, {4, 3}},  {{5, 17, 16, 33}, {7, 7}}, {{5, 18, 16, 33}, {6, 8}}};
  for (const auto& c : cases) {
    const Dims shape = c.first;
    const Size2 size = c.second;
    const auto share = [](int64_t pixels, int64_t outputs) {
      return [=](int64_t i, int64_t pixel) {
        // Pixel p covers [p, p + 1] and output i covers [i s / o, (i + 1) s / o]. The mean is over the pixels that
        // overlap the output.
        const auto meets = [&](int64_t p) { return (p + 1) * outputs > i * pixels && p * outputs < (i + 1) * pixels; };
        int64_t count = 0;
        for (int64_t p = 0; p < pixels; ++p) count += meets(p);
        return meets(pixel) ? 1.0 / static_cast<double>(count) : 0.0;
      };
    };
    Sample& s = op.add(
        text("size ", size), {op.draw.normal(shape)}, [=](const Tensor& x) { return adaptive_avg_pool2d(x, size); },
        [=](const Array& a) {
          return weighted(a, size.height, size.width, share(a.shape[1], size.height), share(a.shape[2], size.width));
        });
    s.length = static_cast<double>(ceil_div(shape[1], size.height) * ceil_div(shape[2], size.width));
    s.large = shape[0] == 5;
  }
  op.refuse({"[3, 4, 2]", "[images, height, width, channels]"}, [] { adaptive_avg_pool2d(reals({3, 4, 2}), 2); });
  op.refuse({"size of 0 x 2"}, [] { adaptive_avg_pool2d(reals({1, 4, 4, 2}), {0, 2}); });
  op.refuse({"images of 4 x 0"}, [] { adaptive_avg_pool2d(reals({1, 4, 0, 2}), 2); });
  op.refuse({"i64"}, [] { adaptive_avg_pool2d(integers({1, 4, 4, 2}), 2); });
  return op;
}

OpCase interpolate_case() {
  OpCase op = row_of("Images", "interpolate", "(x, InterpolateOptions options)",
                     "images in another size: a copy of a pixel (nearest), or linear between pixels (bilinear)", kOnce);
  const auto add = [&](const Dims& shape, InterpolateOptions o) {
    const bool nearest = o.mode == Interpolation::nearest;
    // The weight of a pixel in an output: 1 for the nearest pixel, or 1 minus the distance.
    const auto share = [=](int64_t pixels, int64_t outputs, double factor) {
      return [=](int64_t i, int64_t pixel) {
        const bool exact = outputs == pixels || (nearest && outputs == 2 * pixels);
        const long double f =
            factor > 0 && !exact ? factor : static_cast<long double>(outputs) / static_cast<long double>(pixels);
        const long double last = static_cast<long double>(pixels - 1), k = static_cast<long double>(i);
        if (nearest) return pixel == std::min(pixels - 1, static_cast<int64_t>(k / f)) ? 1.0 : 0.0;
        const long double at = o.align_corners ? (outputs > 1 ? k * last / static_cast<long double>(outputs - 1) : 0)
                                               : std::clamp((k + 0.5L) / f - 0.5L, 0.0L, last);
        return static_cast<double>(std::max(0.0L, 1 - std::abs(at - static_cast<long double>(pixel))));
      };
    };
    const auto outputs = [](int64_t pixels, int64_t size, double factor) {
      return size > 0 ? size : static_cast<int64_t>(static_cast<double>(pixels) * factor);
    };
    Sample& s = op.add(
        text("size ", o.size, " factor ", o.scale_factor, nearest ? " nearest" : " bilinear",
             o.align_corners ? " align_corners" : ""),
        {op.draw.normal(shape)}, [=](const Tensor& x) { return interpolate(x, o); },
        [=](const Array& a) {
          const int64_t height = outputs(a.shape[1], o.size.height, o.scale_factor.height),
                        width = outputs(a.shape[2], o.size.width, o.scale_factor.width);
          return weighted(a, height, width, share(a.shape[1], height, o.scale_factor.height),
                          share(a.shape[2], width, o.scale_factor.width));
        });
    // A position among n pixels is rounded by up to n eps / 2, and so is the weight of a pixel.
    s.length = std::pow(static_cast<double>(2 + std::max(shape[1], shape[2])), 2);
    if (nearest) s.tolerance = tolerance::exact;
    s.large = shape[0] == 5;
  };
  const std::vector<Dims> images = {{2, 3, 4, 2}, {1, 1, 5, 3}, {0, 3, 3, 2}, {1, 7, 2, 9}};
  const std::vector<InterpolateOptions> sizes = {
      {.scale_factor = 2},          {.scale_factor = {3, 1}}, {.scale_factor = {1.5, 2.5}},
      {.scale_factor = {1.1, 2.2}}, {.size = {5, 7}},         {.size = {1, 3}}};
  for (const Dims& shape : images)
    for (InterpolateOptions o : sizes) {
      add(shape, o);
      o.mode = Interpolation::bilinear;
      add(shape, o);
      o.align_corners = true;
      add(shape, o);
    }
  add({1, 4, 6, 2}, {.scale_factor = 0.5});
  add({1, 4, 6, 2}, {.scale_factor = 0.5, .mode = Interpolation::bilinear});
  add({5, 9, 8, 33}, {.scale_factor = 2});
  add({5, 9, 8, 33}, {.size = {20, 13}, .mode = Interpolation::bilinear});
  op.refuse({"[3, 4, 2]", "[images, height, width, channels]"}, [] {
    interpolate(reals({3, 4, 2}), {.scale_factor = 2});
  });
  op.refuse({"size of 0 x 0", "scale_factor of 0 x 0", "exactly one"}, [] { interpolate(reals({1, 4, 4, 2}), {}); });
  op.refuse({"size of 3 x 3", "scale_factor of 2 x 2", "exactly one"}, [] {
    interpolate(reals({1, 4, 4, 2}), {.size = 3, .scale_factor = 2});
  });
  op.refuse({"size of 0 x 2"}, [] { interpolate(reals({1, 4, 4, 2}), {.size = {0, 2}}); });
  op.refuse({"scale_factor of 0.1 x 1", "[1, 4, 4, 2]"}, [] {
    interpolate(reals({1, 4, 4, 2}), {.scale_factor = {0.1, 1}});
  });
  op.refuse({"scale_factor of -1 x -1"}, [] { interpolate(reals({1, 4, 4, 2}), {.scale_factor = -1}); });
  op.refuse({"scale_factor of nan"}, [] { interpolate(reals({1, 4, 4, 2}), {.scale_factor = std::nan("")}); });
  op.refuse({"nearest", "align_corners"}, [] {
    interpolate(reals({1, 4, 4, 2}), {.scale_factor = 2, .align_corners = true});
  });
  op.refuse({"images of 4 x 0"}, [] { interpolate(reals({1, 4, 0, 2}), {.scale_factor = 2}); });
  op.refuse({"i64"}, [] { interpolate(integers({1, 4, 4, 2}), {.scale_factor = 2}); });
  return op;
}

}  // namespace

std::vector<OpCase> resize_cases() { return {adaptive_case(), interpolate_case()}; }

}  // namespace isonorm::test
