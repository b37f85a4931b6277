// Questions of other libraries' users about layers for images and sequences, as small programs whose results follow
// from a formula. Each case names the repository and issue.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/methods.h"
#include "autograd/ops/shape.h"
#include "nn/container.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/parameter_free.h"
#include "tests/nn/models.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using Values = std::vector<double>;

namespace {

// 0, 1, 2, ...
Tensor counted(const Dims& shape) { return arange(numel(shape)).to(DType::f64).reshape(shape); }

Values values(const Tensor& x) { return x.to_vector<double>(); }

double furthest(const Tensor& x, const Values& expected) {
  const Values v = values(x);
  REQUIRE(v.size() == expected.size());
  double most = 0;
  for (size_t i = 0; i < v.size(); ++i) most = std::max(most, std::abs(v[i] - expected[i]));
  return most;
}

}  // namespace

TEST_CASE("layer questions: output_padding computes pixels instead of adding zeros (pytorch 8816)") {
  // One pixel: the output is the window without its first row and column, which the padding removes.
  const Tensor w = counted({1, 3, 3, 1});
  const Tensor y =
      conv_transpose2d(ones({1, 1, 1, 1}, {DType::f64}), w, {}, {.stride = 2, .padding = 1, .output_padding = 1});
  CHECK(y.shape() == Dims{1, 2, 2, 1});
  CHECK(values(y) == Values{4, 5, 7, 8});
}

TEST_CASE(
    "layer questions: a window of one pixel with stride 2 takes its gradient from every other pixel (pytorch 63314)") {
  const Tensor x = tensor({-2.0, -0.5}).reshape({1, 1, 2, 1}).require_grad(),
               w = full({1, 1, 1, 1}, -0.75, {DType::f64});
  const Tensor y = conv_transpose2d(x, w, {}, {.stride = 2});
  CHECK(values(y) == Values{1.5, 0, 0.375});
  y.backward(tensor({1.5, 100.0, 0.5}).reshape({1, 1, 3, 1}));
  CHECK(values(x.grad()) == Values{1.5 * -0.75, 0.5 * -0.75});
}

TEST_CASE("layer questions: stride and dilation of a transposed convolution act together (mxnet 11203)") {
  // Only the middle of the window is 1: the output has pixels at distance 2, beginning with the first, since the
  // padding removes `dilation` rows.
  const Tensor x = counted({1, 3, 3, 1}) + 1.0, w = zeros({1, 3, 3, 1}, {DType::f64});
  copy_into(w(0, 1, 1, 0), tensor(1.0));
  const Tensor y = conv_transpose2d(x, w, {}, {.stride = 2, .padding = 2, .dilation = 2});
  CHECK(values(y) == Values{1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 4, 0, 5, 0, 6, 0, 0, 0, 0, 0, 7, 0, 8, 0, 9});
}

TEST_CASE("layer questions: the size of a transposed convolution with dilation (onnxruntime 2518)") {
  const nn::ConvTranspose2dLayerOptions o{.stride = {2, 1}, .padding = {4, 2}, .dilation = {3, 1}};
  nn::ConvTranspose2d layer(1, 3, {3, 5}, o);
  // stride (size - 1) + (window - 1) dilation + 1 - 2 padding
  CHECK(layer(zeros({1, 50, 50, 1})).shape() == Dims{1, 2 * 49 + 2 * 3 + 1 - 8, 49 + 4 + 1 - 4, 3});
}

TEST_CASE("layer questions: the same options take the shape of a convolution back, with output_padding (mlx 1423)") {
  for (const int64_t size : {7, 8, 9, 10}) {
    nn::Conv2d down(2, 3, 3, {.stride = 2, .padding = 1});
    nn::ConvTranspose2d up(3, 2, 3, {.stride = 2, .padding = 1, .output_padding = (size + 1) % 2});
    const Tensor x = zeros({1, size, size, 2});
    CHECK(up(down(x)).shape() == x.shape());
  }
}

TEST_CASE("layer questions: a transposed convolution is the adjoint of the convolution with the same weight") {
  // <conv2d(x, w), y> = <x, conv_transpose2d(y, w)>, also with groups, whose gradients were wrong in another library
  // (pytorch 51430).
  manual_seed(2);
  const Conv2dOptions down{.stride = 2, .padding = 1, .dilation = 2, .groups = 2};
  const ConvTranspose2dOptions up{.stride = 2, .padding = 1, .dilation = 2, .groups = 2};
  const Tensor x = randn({2, 9, 7, 4}, nn::kF64), w = randn({6, 3, 3, 2}, nn::kF64);
  const Tensor there = conv2d(x, w, {}, down), y = randn(there.shape(), nn::kF64),
               back = conv_transpose2d(y, w, {}, up);
  REQUIRE(back.shape() == x.shape());
  const double a = (there * y).sum().item(), b = (x * back).sum().item();
  CHECK(std::abs(a - b) < 1e-12 * std::sqrt((there * there).sum().item() * (y * y).sum().item()));
}

TEST_CASE("layer questions: fractional factors keep the half pixel of align_corners = false (mlx 3908)") {
  const Tensor x = counted({1, 1, 5, 1});
  const InterpolateOptions o{.scale_factor = {1, 1.5}, .mode = Interpolation::bilinear};
  // (i + 1/2) / 1.5 - 1/2, between 0 and 4
  CHECK(furthest(interpolate(x, o), {0, 1. / 2, 7. / 6, 11. / 6, 5. / 2, 19. / 6, 23. / 6}) < 4e-15);
}

TEST_CASE("layer questions: two by two pixels become five by five, with and without align_corners (drjit 215)") {
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0}).reshape({1, 2, 2, 1});
  InterpolateOptions o{.size = 5, .mode = Interpolation::bilinear};
  Values plain, aligned;
  for (const double row : {0., 0.1, 0.5, 0.9, 1.})
    for (const double column : {0., 0.1, 0.5, 0.9, 1.}) plain.push_back(1 + 2 * row + column);
  for (int row = 0; row < 5; ++row)
    for (int column = 0; column < 5; ++column) aligned.push_back(1 + 2 * row / 4. + column / 4.);
  CHECK(furthest(interpolate(x, o), plain) < 4e-15);
  o.align_corners = true;
  CHECK(furthest(interpolate(x, o), aligned) < 4e-15);
}

TEST_CASE("layer questions: a factor that is a quotient may miss a pixel, and a size does not (pytorch 96236)") {
  const Tensor x = zeros({1, 88, 88, 1});
  CHECK(interpolate(x, {.scale_factor = 120. / 88}).size(1) == 119);  // 88 (120 / 88) < 120 in f64
  CHECK(interpolate(x, {.size = 120}).size(1) == 120);
}

TEST_CASE(
    "layer questions: nearest copies each pixel twice if the size doubles, else takes floor(i / factor) (pytorch "
    "121390)") {
  const Tensor y = interpolate(counted({1, 4, 2, 1}), {.scale_factor = {2.05, 3.15}});
  REQUIRE(y.shape() == Dims{1, 8, 6, 1});
  Values expected;  // as PyTorch prints them
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 6; ++j) expected.push_back(2 * (i / 2) + std::floor(j / 3.15));
  CHECK(values(y) == expected);
}

TEST_CASE("layer questions: dilated causal convolution keeps the length and sees no later step (keras 8751)") {
  manual_seed(3);
  const int64_t window = 2, dilation = 8;
  nn::Conv1d layer(1, 1, window, {.dilation = dilation});
  const Tensor x = randn({1, 20, 1}).require_grad();
  const Tensor y = layer(pad(x, {{(window - 1) * dilation, 0}, {0, 0}}));
  REQUIRE(y.shape() == x.shape());
  y(0, 12, 0).backward();
  for (int64_t t = 0; t < 20; ++t) {
    const double expected = t == 12              ? layer.weight(0, 1, 0).item()
                            : t == 12 - dilation ? layer.weight(0, 0, 0).item()
                                                 : 0;
    CHECK(x.grad()(0, t, 0).item() == expected);
  }
}

TEST_CASE("layer questions: layers of a Sequential give features one by one (TorchSharp 869)") {
  manual_seed(4);
  nn::Sequential net(nn::Conv2d(1, 2, 3), nn::Relu(), nn::Flatten(), nn::Linear(8, 3));
  const Tensor x = randn({2, 4, 4, 1});
  Tensor y = x;
  std::vector<Tensor> features;
  for (int64_t i = 0; i < static_cast<int64_t>(net.size()); ++i) features.push_back(y = net[i](y));
  CHECK(features[1].shape() == Dims{2, 2, 2, 2});
  CHECK(values(features.back()) == values(net(x)));
}

TEST_CASE(
    "layer questions: pictures without a batch, and windows larger than a sequence, are told so (pytorch 1606, 4607)") {
  nn::Conv2d conv(3, 8, 3);
  CHECK(test::thrown([&] {
          conv(zeros({10, 20, 3}));
        }) == "conv2d: the input has shape [10, 20, 3], expected [images, height, width, channels]");
  nn::Conv1d line(1, 1, 3, {.stride = 2});
  CHECK(test::thrown([&] {
          line(zeros({1, 2, 1}));
        }) == "conv1d: a window of 3 is larger than sequences of 2 with a padding of 0");
}
