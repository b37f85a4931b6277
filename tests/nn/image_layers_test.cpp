// Layers for images and sequences in a model: shapes, initial values, training, files and printing. Their values are
// tested by rows of tests/op_cases and cases of tests/fixtures.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/reduce.h"
#include "io/safetensors.h"
#include "nn/container.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/parameter_free.h"
#include "nn/print.h"
#include "optim/adam.h"
#include "tests/nn/models.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

using namespace isonorm;

namespace {

// 8 x 12 pixels down to 2 x 3 and up again.
nn::Sequential autoencoder() {
  return nn::Sequential(nn::Conv2d(1, 4, 3, {.stride = 2, .padding = 1}), nn::LeakyRelu(0.1),
                        nn::Conv2d(4, 6, 3, {.stride = 2, .padding = 1}), nn::Identity(),
                        nn::ConvTranspose2d(6, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1}), nn::Tanh(),
                        nn::Upsample({.scale_factor = 2, .mode = Interpolation::bilinear}),
                        nn::Conv2d(4, 1, 3, {.padding = 1}));
}

// Checks the largest entry and the mean square of a tensor that is uniform in +-bound.
void check_uniform(const Tensor& x, double bound) {
  const std::vector<double> v = x.to_vector<double>();
  double largest = 0, square = 0;
  for (const double e : v) largest = std::max(largest, std::abs(e)), square += e * e / static_cast<double>(v.size());
  CHECK(largest <= bound * (1 + 0x1p-23));
  CHECK(largest > 0.95 * bound);
  // The square has mean b^2 / 3 and standard deviation b^2 sqrt(4 / 45). Allows five standard errors of the mean.
  CHECK(std::abs(square - bound * bound / 3) < 5 * bound * bound * std::sqrt(4. / 45 / static_cast<double>(v.size())));
}

}  // namespace

TEST_CASE("image layers: initial weights and biases are PyTorch's, uniform in +-1/sqrt(entries of weight[0])") {
  manual_seed(5);
  const nn::Conv2d conv(12, 600, {3, 2}, {.groups = 3});
  CHECK(conv.weight.shape() == Dims{600, 3, 2, 4});
  check_uniform(conv.weight, 1 / std::sqrt(24.));
  check_uniform(conv.bias, 1 / std::sqrt(24.));
  const nn::Conv1d line(12, 600, 5, {.groups = 2});
  CHECK(line.weight.shape() == Dims{600, 5, 6});
  check_uniform(line.weight, 1 / std::sqrt(30.));
  check_uniform(line.bias, 1 / std::sqrt(30.));
  const nn::ConvTranspose2d up(12, 600, {3, 2}, {.groups = 3});
  CHECK(up.weight.shape() == Dims{12, 3, 2, 200});
  check_uniform(up.weight, 1 / std::sqrt(1200.));
  check_uniform(up.bias, 1 / std::sqrt(1200.));
}

TEST_CASE("image layers: an autoencoder made of them learns, and its weights are read back from a file") {
  manual_seed(1);
  nn::Sequential net = autoencoder();
  const Tensor x = randn({4, 8, 12, 1});
  CHECK(net(x).shape() == x.shape());
  optim::Adam opt(net.parameters(), {.lr = 1e-2});
  const double before = mse_loss(net(x), x).item();
  for (int step = 0; step < 60; ++step) {
    mse_loss(net(x), x).backward();
    opt.step();
    opt.zero_grad();
  }
  const double after = mse_loss(net(x), x).item();
  CHECK(after < 0.8 * before);
  const TempFolder folder;
  save_safetensors(folder / "net.safetensors", net.state_dict());
  nn::Sequential other = autoencoder();
  other.load_state_dict(load_safetensors(folder / "net.safetensors"));
  CHECK(mse_loss(other(x), x).item() == after);
  CHECK(mse_loss(nn::clone(net)(x), x).item() == after);
}

TEST_CASE("image layers: their tree is printed with classes, numbers of parameters and shapes") {
  const nn::Sequential net(nn::Conv1d(2, 4, 3), nn::LeakyRelu(), nn::Flatten(), nn::Identity());
  CHECK(nn::to_string(net) ==
        "nn::Sequential                 28\n"
        "  0             nn::Conv1d     28  weight [4, 3, 2], bias [4]\n"
        "  1             nn::LeakyRelu\n"
        "  2             nn::Flatten\n"
        "  3             nn::Identity");
  const nn::Sequential images(nn::ConvTranspose2d(3, 2, 2, {.bias = false}), nn::Upsample({.scale_factor = 2}),
                              nn::AdaptiveAvgPool2d(1));
  CHECK(nn::to_string(images) ==
        "nn::Sequential                         24\n"
        "  0             nn::ConvTranspose2d    24  weight [3, 2, 2, 2]\n"
        "  1             nn::Upsample\n"
        "  2             nn::AdaptiveAvgPool2d");
}

TEST_CASE(
    "image layers: Flatten joins all dimensions of an example, or those that it is given; Identity takes any dtype") {
  const Tensor x = randn({2, 3, 4, 5});
  CHECK(nn::Flatten()(x).shape() == Dims{2, 60});
  CHECK(nn::Flatten(0, 1)(x).shape() == Dims{6, 4, 5});
  CHECK(nn::Flatten()(x).to_vector<float>() == x.to_vector<float>());
  CHECK(nn::Flatten()(zeros({0, 3, 4})).shape() == Dims{0, 12});
  CHECK_THROWS_WITH(nn::Flatten()(zeros({3})), Catch::Matchers::Contains("flatten: "));
  const Tensor ids = tensor({1, 2});
  CHECK(nn::Identity()(ids).to_vector<int64_t>() == ids.to_vector<int64_t>());
}

TEST_CASE("image layers: bf16 rows with f32 weights give f32 gradients, summed in f32") {
  manual_seed(2);
  const auto check_layer = [](auto& layer, const Dims& shape) {
    const Tensor x = randn(shape), low = detach(x.to(DType::bf16)).require_grad();
    const Tensor y = layer(low);
    CHECK(y.dtype() == DType::bf16);
    sum(y.to(DType::f32)).backward();
    CHECK(low.grad().dtype() == DType::bf16);
    CHECK(layer.weight.grad().dtype() == DType::f32);
    // The bias's gradient is the number of outputs per channel, which bf16 cannot represent: it has 8 bits.
    const int64_t count = y.numel() / y.size(-1);
    CHECK(count > 256);
    CHECK(layer.bias.grad().template to_vector<double>() == std::vector<double>(2, static_cast<double>(count)));
  };
  nn::Conv1d line(3, 2, 3, {.padding = 1});
  check_layer(line, {7, 47, 3});
  nn::ConvTranspose2d up(3, 2, 3, {.stride = 2});
  check_layer(up, {1, 9, 13, 3});
}

TEST_CASE("image layers: what does not fit is refused in one line") {
  using test::thrown;
  CHECK(thrown([] { nn::Conv1d(3, 4, 3, {.groups = 2}); }) ==
        "conv1d: 2 groups do not divide 3 channels of the input and 4 of the output");
  CHECK(thrown([] { nn::ConvTranspose2d(4, 6, 0); }) ==
        "conv_transpose2d: sizes 4 -> 6 with a window of 0 x 0 must be positive");
  nn::Sequential net(nn::Conv1d(3, 4, 3));
  CHECK(thrown([&] {
          net(zeros({2, 3, 9}));
        }) ==
        "0: conv1d: sequences [2, 3, 9] are [n, length, channels], so they have 9 channels; weight [4, 3, 3] reads 3; "
        "transpose(x, 1, 2) moves the channels to the end");
  nn::Sequential pool(nn::AdaptiveAvgPool2d(0));
  CHECK(thrown([&] {
          pool(zeros({2, 4, 4, 3}));
        }) == "0: adaptive_avg_pool2d: a size of 0 x 0, expected 1 x 1 or more");
  nn::Sequential up(nn::Upsample({}));
  CHECK(thrown([&] {
          up(zeros({2, 4, 4, 3}));
        }) == "0: interpolate: a size of 0 x 0 and a scale_factor of 0 x 0, expected exactly one of them");
}
