// Sequential and ModuleList take modules, and can be cloned.
#include "nn/container.h"

#include "nn/attention.h"
#include "nn/conv.h"
#include "nn/feed_forward.h"
#include "nn/group_norm.h"
#include "nn/parameter_free.h"
#include "nn/print.h"
#include "nn/recurrent/recurrent.h"
#include "nn/transformer.h"
#include "tests/nn/models.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

// A clone has the class's options, the values and the mode, and no tensor of the original.
template <class M> void check_clone(M module, const Tensor& x, bool train) {
  INFO(to_string(module));
  module.train(train);
  for (const Tensor& p : module.parameters()) {
    const NoGrad no_grad;
    copy_into(p, p + 0.1 * randn(p.shape()));
  }
  M copy = clone(module);
  CHECK(copy.training() == train);
  CHECK(to_string(copy) == to_string(module));
  const std::vector<NamedParameter> from = module.named_state(), to = copy.named_state();
  REQUIRE(from.size() == to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    CHECK(from[i].name == to[i].name);
    CHECK(from[i].tensor.impl().storage != to[i].tensor.impl().storage);
  }
  manual_seed(3);
  const Tensor y = module(x);
  manual_seed(3);
  CHECK(copy(x).template to_vector<float>() == y.template to_vector<float>());
}

struct Wide : Module {
  explicit Wide(int64_t width) : layer(add("layer", Linear(width, width))) {}
  Linear& layer;
  Tensor forward(const Tensor& x) override { return layer(x); }
};

}  // namespace

TEST_CASE("container: every layer has a clone with its options, alone and in a Sequential") {
  const Tensor rows = randn({2, 3, 8}), images = randn({2, 6, 5, 8});
  const auto both = [](auto make, const Tensor& x) {
    for (const bool train : {true, false}) {
      check_clone(make(), x, train);
      check_clone(Sequential(Relu(), make()), x, train);
      check_clone(Sequential(Sequential(make(), Tanh()), Gelu()), x, train);
    }
  };
  both([] { return Linear(8, 5, {.bias = false}); }, rows);
  both([] { return BranchOutput(8, 5, false, {.dropout = 0.3, .layer_scale = 0.5}); }, rows);
  both([] { return Dropout(0.2); }, rows);
  both([] { return GaussianNoise(0.2); }, rows);
  both([] { return LayerNorm(8, {.eps = 0.1, .bias = false}); }, rows);
  both([] { return RMSNorm(8, {.eps = 0.1, .affine = false}); }, rows);
  both([] { return Norm(8, {.kind = NormKind::rms, .eps = 0.1, .p = 0.5}); }, rows);
  both([] { return FeedForward(8, {.hidden = 5, .activation = Activation::swiglu, .bias = false}); }, rows);
  both([] { return MultiheadAttention(8, {.heads = 2, .head_width = 6, .kv_heads = 1, .causal = true}); }, rows);
  const TransformerOptions blocks{.width = 8, .depth = 2, .heads = 2, .causal = true, .affine = true};
  both([&] { return TransformerBlock(blocks); }, rows);
  both([&] { return TransformerStack(blocks); }, rows);
  both([] { return Conv2d(8, 4, {3, 2}, {.stride = 2, .padding = 1, .groups = 2, .bias = false}); }, images);
  both([] { return MaxPool2d(2, {.stride = 1}); }, images);
  both([] { return AvgPool2d(3, {.padding = 1}); }, images);
  both([] { return Conv1d(8, 4, 2, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .bias = false}); }, rows);
  const ConvTranspose2dLayerOptions up{
      .stride = 2, .padding = {1, 0}, .output_padding = 1, .dilation = {1, 2}, .groups = 2, .bias = false};
  both([&] { return ConvTranspose2d(8, 4, {3, 2}, up); }, images);
  both([] { return AdaptiveAvgPool2d({2, 3}); }, images);
  both([] { return Upsample({.size = {4, 9}, .mode = Interpolation::bilinear, .align_corners = true}); }, images);
  both([] { return Identity(); }, images);
  both([] { return Flatten(2); }, images);
  both([] { return LeakyRelu(0.3); }, rows);
  both([] { return GroupNorm(2, 8, {.kind = NormKind::rms, .eps = 0.1, .affine = false}); }, images);
  both([] { return BatchNorm(8, {.eps = 0.1, .momentum = 0.4}); }, images);
}

TEST_CASE("container: layers that run by another operator() have clones, too") {
  const Tensor x = randn({2, 3, 4});
  const Gru gru({.inputs = 4, .hidden = 3, .layers = 2});
  Gru copy = clone(gru);
  CHECK(copy(x).output.to_vector<float>() == const_cast<Gru&>(gru)(x).output.to_vector<float>());
  CrossAttention cross(4, 6, {.heads = 2, .bias = false}), twin = clone(cross);
  const Tensor encoded = randn({2, 5, 6});
  CHECK(twin(x, encoded, {}).to_vector<float>() == cross(x, encoded, {}).to_vector<float>());
  const Embedding table(5, 3);
  CHECK(clone(table).weight.to_vector<float>() == table.weight.to_vector<float>());
}

TEST_CASE("container: a list is cloned, and a copy of a part of it goes into another container") {
  ModuleList<Linear> list;
  list.append({3, 4});
  list.append(Linear(4, 2));
  ModuleList<Linear> copy = clone(list);
  REQUIRE(copy.size() == 2);
  const Tensor x = randn({2, 3});
  CHECK(copy[1](copy[0](x)).to_vector<float>() == list[1](list[0](x)).to_vector<float>());
  Sequential trunk(Linear(3, 3), Tanh());
  const int64_t before = trunk.parameter_count();
  Sequential actor(clone(trunk), Linear(3, 2)), critic(clone(trunk), Linear(3, 1));
  CHECK(trunk.parameter_count() == before);
  CHECK(actor.parameter_count() == before + 8);
  CHECK(critic.parameter_count() == before + 4);
}

TEST_CASE(
    "container: a class of the user's is cloned by its options, by rebuild() or without arguments; else it is named") {
  struct Options {
    int64_t width = 3;
  };
  struct ByOptions : Module {
    explicit ByOptions(const Options& o) : options(o), layer(add("layer", Linear(o.width, 3))) {}
    const Options options;
    Linear& layer;
    Tensor forward(const Tensor& x) override { return layer(x); }
  };
  struct Rebuilt : Wide {
    using Wide::Wide;
    Rebuilt rebuild() const { return Rebuilt(layer.weight.size(0)); }
  };
  struct Plain : Module {
    Linear& layer = add("layer", Linear(3, 3));
    Tensor forward(const Tensor& x) override { return layer(x); }
  };
  check_clone(Sequential(ByOptions(Options{7}), Rebuilt(3), Plain()), randn({2, 7}), true);
  Sequential net(Relu(), Wide(3));
  CHECK(test::thrown([&] { (void)clone(net); }) ==
        "clone: child '1' is a Wide, whose constructor takes arguments; keep them in a member `options`, or write a "
        "member function `Wide rebuild() const`");
}

TEST_CASE("container: a missing forward is named with its class and the line that is missing") {
  struct Silent : Module {};
  Sequential net(Relu(), Silent{});
  CHECK(test::thrown([&] {
          net(randn({2, 3}));
        }) ==
        "1: Silent has no `Tensor forward(const Tensor& x) override`; write it, or call the operator() that the class "
        "has");
}

TEST_CASE("container: convolution and norms of images state their order of dimensions") {
  Conv2d conv(3, 4, 3, {.padding = 1, .bias = false});
  CHECK_FALSE(conv.bias.defined());
  CHECK(conv(zeros({2, 6, 5, 3})).shape() == Dims{2, 6, 5, 4});
  CHECK(test::thrown([&] {
          conv(zeros({2, 3, 6, 5}));
        }) ==
        "conv2d: images [2, 3, 6, 5] are [n, height, width, channels], so they have 5 channels; weight [4, 3, 3, 3] "
        "reads 3; permute(x, {0, 2, 3, 1}) moves the channels to the end");
  CHECK(test::thrown([&] {
          conv(zeros({2, 6, 5, 4}));
        }) ==
        "conv2d: images [2, 6, 5, 4] are [n, height, width, channels], so they have 4 channels; weight [4, 3, 3, 3] "
        "reads 3");
}
