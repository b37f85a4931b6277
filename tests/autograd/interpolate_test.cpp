// Resized images: PyTorch's values if a factor does not divide, and the CPU's kernel against the composition.
#include "autograd/ops/images.h"

#include "core/memory/bytes.h"
#include "tests/support/threads.h"
#include "tests/autograd/room.h"

using Values = std::vector<double>;

namespace {

// The squares of 0 to 15 in an image of 4 x 4 pixels; or the first four, in one row.
Tensor squares(int64_t height) {
  return square(arange(0, 4 * static_cast<double>(height), 1, {DType::f64})).reshape({1, height, 4, 1});
}

// Sums of 2 x 2 of the numbers up to 225, with rounded shares.
void check_close(const Tensor& found, const Values& expected) {
  const Values v = found.to_vector<double>();
  REQUIRE(v.size() == expected.size());
  for (size_t i = 0; i < v.size(); ++i) CHECK(std::abs(v[i] - expected[i]) <= 8 * 225 * 0x1p-52);
}

}  // namespace

// torch.nn.functional.interpolate of PyTorch 2 on a CPU, recompute_scale_factor not given.
TEST_CASE("interpolate: a factor that keeps the number of pixels keeps the pixels, as in PyTorch") {
  for (const Interpolation mode : {Interpolation::nearest, Interpolation::bilinear})
    check_close(interpolate(squares(4), {.scale_factor = 1.1, .mode = mode}), squares(4).to_vector<double>());
  const Tensor x = squares(4).require_grad();
  const Tensor wider = interpolate(x, {.scale_factor = {1.1, 1.6}, .mode = Interpolation::bilinear});
  check_close(wider, {0,        0.4375,   1.1875,  3.0625,   5.5625,   8.6875,   16,       19.9375,
                      25.6875,  32.5625,  40.0625, 48.1875,  64,       71.4375,  82.1875,  94.0625,
                      106.5625, 119.6875, 144,     154.9375, 170.6875, 187.5625, 205.0625, 223.1875});
  const Tensor number = arange(1, 25, 1, {DType::f64}).reshape(wider.shape());
  check_close(grad(sum(wider * number), {x})[0], {2.125, 4.9375, 6.75, 7.1875, 11.5, 15.0625, 15.75, 14.6875, 20.875,
                                                  25.1875, 24.75, 22.1875, 30.25, 35.3125, 33.75, 29.6875});
}

TEST_CASE("interpolate: places follow the factor that is given, not the rounded size, as in PyTorch") {
  const auto row = [](double factor, Interpolation mode) {
    return interpolate(squares(1), {.scale_factor = {1, factor}, .mode = mode});
  };
  check_close(row(2.2, Interpolation::nearest), {0, 0, 1, 1, 4, 4, 9, 9});  // twice as many pixels: each twice
  check_close(row(2.2, Interpolation::bilinear), {0, 2. / 11, 7. / 11, 14. / 11, 29. / 11, 4, 69. / 11, 94. / 11});
  check_close(row(2.5, Interpolation::nearest), {0, 0, 0, 1, 1, 4, 4, 4, 9, 9});
  check_close(row(0.7, Interpolation::nearest), {0, 1});
  check_close(row(0.7, Interpolation::bilinear), {3. / 14, 41. / 14});
}

TEST_CASE("interpolate: the CPU's kernel agrees with the composition, values and gradients") {
  Generator g{.seed = 7};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Dims& shape : {Dims{2, 9, 7, 5}, Dims{1, 1, 13, 1}, Dims{3, 16, 5, 67}})
      for (const InterpolateOptions& o :
           {InterpolateOptions{.scale_factor = {2.3, 0.7}}, InterpolateOptions{.size = {3, 20}},
            InterpolateOptions{.scale_factor = {2, 3.1}, .mode = Interpolation::bilinear},
            InterpolateOptions{.size = {1, 2}, .mode = Interpolation::bilinear},
            InterpolateOptions{.size = {11, 6}, .mode = Interpolation::bilinear, .align_corners = true}}) {
        const Tensor x = randn(shape, {dtype}, g).require_grad();
        const Tensor y = interpolate(x, o), weight = randn(y.shape(), {dtype}, g), dx = grad(sum(y * weight), {x})[0];
        const UseReference composition;
        const Tensor y2 = interpolate(x, o), dx2 = grad(sum(y2 * weight), {x})[0];
        const double eps = dtype == DType::f32 ? 0x1p-23 : 0x1p-52;
        // An output is a sum of 2 x 2 pixels. At most 30 outputs read a pixel, with shares up to 1.
        CHECK(amax(abs(y - y2)).item() <= 8 * eps * amax(abs(x)).item());
        CHECK(amax(abs(dx - dx2)).item() <= 30 * 30 * eps * amax(abs(weight)).item());
      }
}

TEST_CASE("interpolate on the CPU, and its gradient, need memory for the result and one row per thread") {
  const test::Threads two(2);
  const Tensor x = ones({1, 64, 64, 16}).require_grad(), dy = ones({1, 128, 128, 16});
  const auto taken = [](const auto& f) {
    host_allocator().reset_peak();
    const int64_t before = host_allocator().stats().current;
    f();
    return host_allocator().stats().peak - before;
  };
  for (const Interpolation mode : {Interpolation::nearest, Interpolation::bilinear}) {
    Tensor y;
    // Rows and taps take less than a quarter. The composition holds each pixel of the result twice.
    CHECK(4 * taken([&] { y = interpolate(x, {.scale_factor = 2, .mode = mode}); }) < 5 * byte_size(dy));
    CHECK(4 * taken([&] { grad(y, {x}, dy); }) < 5 * byte_size(x));
  }
}
