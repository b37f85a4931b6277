// Convolutional layers and their norms compared with PyTorch (tests/fixtures/torch_images.py), and the state of
// modules.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "io/safetensors.h"
#include "nn/container.h"
#include "nn/conv.h"
#include "nn/parameter_free.h"
#include "nn/weight_norm.h"
#include "lab/papers/images/conv_pool.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::papers;
using Catch::Matchers::Contains;

namespace {

// Ten layers, each with sums of at most 54 products and statistics over 1200 positions; 16 roundings of each.
const double kTolerance = 10 * 16 * std::sqrt(1200.0) * 0x1p-52;

TensorMap named(const TensorMap& all, const std::string& prefix) {
  TensorMap out;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) out.add(name.substr(prefix.size()), tensor);
  return out;
}

ConvPoolCnn small_model(ConvNorm norm) {
  ConvPoolCnn model({.image = 20, .channels = 2, .classes = 10, .width = 3, .noise = 0, .dropout = 0, .norm = norm});
  model.to(DType::f64);
  return model;
}

}  // namespace

TEST_CASE("ConvPool-CNN-C has PyTorch's logits and gradients with every norm") {
  const TensorMap fixture = load_safetensors("tests/fixtures/images.safetensors");
  const Tensor images = fixture.at("images");
  for (const ConvNorm norm : kConvNorms) {
    const std::string of = text(name_of(norm), "/");
    INFO(of);
    ConvPoolCnn model = small_model(norm);
    TensorMap state = model.state_dict(), given;
    const TensorMap weights = named(fixture, of + "weight/");
    for (const auto& [name, tensor] : state) given.add(name, weights.find(name) ? weights.at(name) : tensor);
    model.load_state_dict(given);
    CHECK(model.parameters().size() == weights.size());

    const Tensor logits = model(images);
    check_close(logits, fixture.at(of + "logits"), kTolerance);
    backward(sum(logits * fixture.at("cotangent")));
    for (const nn::NamedParameter& p : model.named_parameters()) {
      INFO(p.name);
      const Tensor expected = fixture.at(of + "gradient/" + p.name);
      // Before a norm that subtracts the mean, a channel's bias has only rounding as gradient; compared with the
      // largest.
      check_close(p.tensor.grad(), expected, kTolerance);
    }
    // The model's state must now hold the fixture's tensors.
    const auto check_state = [&](const std::string& prefix) {
      const TensorMap now = model.state_dict(), expected = named(fixture, prefix);
      CHECK(expected.size() == 20);
      for (const auto& [name, tensor] : expected) {
        INFO(name);
        check_close(now.at(name), tensor, kTolerance);
      }
    };
    if (norm == ConvNorm::batch) {
      std::vector<double> turned = images.to_vector<double>();
      const size_t each = turned.size() / 3;
      for (size_t i = 0; i < each; ++i) std::swap(turned[i], turned[2 * each + i]);
      model(from_vector(turned, images.shape()) * 1.5);
      check_state("batch/running/");
      model.eval();
      check_close(model(images), fixture.at("batch/evaluated"), kTolerance);
    }
    if (norm == ConvNorm::weight) {
      model.initialise(images);
      check_state("weight/initialised/");
    }
  }
}

TEST_CASE("weight norm begins with outputs of mean 0 and deviation 1") {
  manual_seed(3);
  ConvPoolCnn model({.image = 16, .channels = 1, .classes = 4, .width = 4, .norm = ConvNorm::weight});
  model.to(DType::f64);
  const Tensor images = randn({40, 16, 16, 1}, {DType::f64}) * 3.0 + 2.0;
  model.initialise(images);
  model.eval();
  const Tensor logits = detach(model(images));
  for (const double m : mean(logits, {0}).to_vector<double>()) CHECK(std::abs(m) < 1e-12);
  for (const double v : var(logits, {0}, 0).to_vector<double>()) CHECK(std::abs(v - 1) < 1e-12);
}

TEST_CASE("buffers are saved, loaded, moved, cloned and not trained") {
  nn::BatchNorm norm(2);
  CHECK(norm.parameters().size() == 2);
  CHECK(norm.state_dict().size() == 4);
  const Tensor x = tensor({1.f, 2.f, 3.f, 6.f});  // two channels: 1, 3 and 2, 6
  norm(reshape(x, {2, 2}));
  const std::vector<double> mean = norm.running_mean.to_vector<double>(), var = norm.running_var.to_vector<double>();
  CHECK((mean[0] == Approx(0.1 * 2) && mean[1] == Approx(0.1 * 4)));
  CHECK(
      (var[0] == Approx(0.9 + 0.1 * 2) && var[1] == Approx(0.9 + 0.1 * 8)));  // population variance 1, times 2/(2 - 1)
  CHECK(!takes_gradient(norm.running_mean));

  nn::BatchNorm copy = nn::clone(norm, 2);
  CHECK(copy.running_var.to_vector<double>() == var);
  norm.to(DType::f64);
  CHECK(norm.running_mean.dtype() == DType::f64);
  CHECK(norm.state_dict().at("running_mean").dtype() == DType::f64);
  CHECK(!takes_gradient(norm.running_mean));
  TensorMap without;
  for (const auto& [name, t] : copy.state_dict())
    if (name != "running_var") without.add(name, t);
  CHECK_THROWS_WITH(copy.load_state_dict(without), Contains("missing     running_var [2]"));
}

TEST_CASE("a batch norm in evaluation uses its running statistics; batches that it cannot train on are refused") {
  nn::BatchNorm norm(3);
  norm.eval();
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {1, 3});
  for (const double d : (norm(x) - x).to_vector<double>()) CHECK(std::abs(d) < 3 * 5e-6 + 1e-6);  // 1/sqrt(1 + eps)
  norm.train();
  CHECK_THROWS_WITH(norm(x), "batch_norm: training needs 2 values of a channel at least, input [1, 3] has 1");
  CHECK_THROWS_WITH(norm(zeros({4, 2})), Contains("input [4, 2] is no [n, ..., channels] of 3 channels"));
  CHECK_THROWS_WITH(nn::BatchNorm(3, {.momentum = 2}), Contains("momentum is 2"));
}

TEST_CASE("noise is there in training alone, with its deviation") {
  manual_seed(5);
  nn::GaussianNoise noise(0.15);
  const Tensor x = zeros({100000});
  const double v = var(noise(x)).item();
  CHECK(std::abs(v - 0.15 * 0.15) < 5 * 0.15 * 0.15 * std::sqrt(2.0 / 100000));  // five standard errors
  noise.eval();
  CHECK(noise(x).to_vector<double>() == x.to_vector<double>());
  CHECK_THROWS_WITH(nn::GaussianNoise(-1), Contains("deviation of -1"));
}

TEST_CASE("dropout follows both poolings, noise comes before the first layer") {
  const Tensor images = randn({2, 16, 16, 1});
  for (const auto& [noise, dropout] : {std::pair{0.0, 0.0}, {0.1, 0.0}, {0.0, 0.3}}) {
    ConvPoolCnn model({.image = 16, .channels = 1, .width = 8, .noise = noise, .dropout = dropout});
    const auto draws = [&] { return default_generator().offset; };
    const auto before = draws();
    model(images);
    // The number of values that a random tensor draws from the generator depends only on its size.
    auto expected = before;
    const auto add = [&](Dims shape, bool normal) {
      Generator g{.seed = 1};
      normal ? randn(shape, {}, g) : isonorm::dropout(zeros(shape), 0.3, true, g);
      expected += g.offset;
    };
    if (noise > 0) add({2, 16, 16, 1}, true);
    if (dropout > 0) add({2, 8, 8, 8}, false), add({2, 4, 4, 16}, false);
    CHECK(draws() == expected);
  }
}

TEST_CASE("layers of images have their sizes, and say what does not fit") {
  nn::Sequential net(nn::Conv2d(3, 8, 3, {.stride = 2, .padding = 1}), nn::GroupNorm(4, 8), nn::MaxPool2d(2),
                     nn::AvgPool2d({2, 1}));
  CHECK(net(zeros({2, 16, 12, 3})).shape() == Dims{2, 2, 3, 8});
  CHECK(nn::Conv2d(4, 6, 3, {.groups = 2, .bias = false}).weight.shape() == Dims{6, 3, 3, 2});
  ConvPoolCnn model({.image = 16, .width = 2});
  CHECK_THROWS_WITH(nn::Conv2d(3, 8, 3, {.groups = 2}), Contains("2 groups do not divide 3"));
  CHECK_THROWS_WITH(nn::Conv2d(3, 0, 3), Contains("3 -> 0"));
  CHECK_THROWS_WITH(nn::GroupNorm(3, 8), Contains("3 groups do not divide 8"));
  CHECK_THROWS_WITH(ConvPoolCnn({.image = 15}), Contains("15 pixels"));
  CHECK_THROWS_WITH(model(zeros({1, 16, 16, 1})), Contains("[1, 16, 16, 1], expected [n, 16, 16, 3]"));
  CHECK_THROWS_WITH(nn::weight_norm(zeros({3, 2}), zeros({2})), Contains("gain [2]"));
}
