// Second derivatives of whole models, f64: Hessian-vector products compared with finite differences of gradients. These
// gradients are computed without create_graph, so by the fused kernels and not by the compositions that yield the
// second derivatives.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/fused/attention.h"
#include "autograd/fused/mlp.h"
#include "autograd/ops/loss.h"
#include "nn/container.h"
#include "nn/conv.h"
#include "nn/gpt.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "nn/module_scope.h"
#include "nn/parameter_free.h"
#include "nn/recurrent/recurrent.h"
#include "nn/vit.h"
#include "tests/nn/models.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using namespace isonorm::nn;
using Values = std::vector<double>;

namespace {

Values joined(const std::vector<Tensor>& tensors) {
  Values all;
  for (const Tensor& t : tensors) {
    const Values v = t.to_vector<double>();
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

// Hessian of loss() with respect to the leaves, times a random vector v, compared with (8 (g(h) - g(-h)) - (g(2h) -
// g(-2h))) / 12h, where g(t) is the gradient at leaves + t v (Abramowitz & Stegun 25.3.6). Its errors are h^4 / 30
// times a fifth derivative, and eps/h times g.
template <class Loss> void check_hessian(const std::vector<Tensor>& leaves, const Loss& loss) {
  manual_seed(9);
  std::vector<Tensor> v, start;
  for (const Tensor& p : leaves) v.push_back(randn(p.shape(), kF64)), start.push_back(clone(detach(p)));
  const std::vector<Tensor> recorded = grad(std::vector<Tensor>{loss()}, leaves, {}, {.create_graph = true});
  const std::vector<Tensor> products = grad(recorded, leaves, v);
  const Values hv = joined(products);

  constexpr double h = 0x1p-12;
  const auto gradients_at = [&](double t) {
    for (size_t i = 0; i < leaves.size(); ++i) copy_into(detach(leaves[i]), start[i] + v[i] * t);
    return joined(grad(std::vector<Tensor>{loss()}, leaves));
  };
  const Values a = gradients_at(h), b = gradients_at(-h), c = gradients_at(2 * h), d = gradients_at(-2 * h);
  for (size_t i = 0; i < leaves.size(); ++i) copy_into(detach(leaves[i]), start[i]);

  const Values g = joined(recorded), plain = gradients_at(0);
  double largest = 0, error = 0, other = 0, slope = 0;
  for (size_t i = 0; i < hv.size(); ++i) {
    largest = std::max(largest, std::abs(hv[i]));
    slope = std::max(slope, std::abs(plain[i]));
    error = std::max(error, std::abs(hv[i] - (8 * (a[i] - b[i]) - (c[i] - d[i])) / (12 * h)));
    other = std::max(other, std::abs(g[i] - plain[i]));
  }
  CHECK(largest > 1e-3);
  CHECK(error <= 1e-7 * largest);  // measured: at most 5e-9, and 4^4 times that with 4 h
  CHECK(other <= 1e-12 * slope);
}

const TransformerOptions kTiny{.width = 6, .depth = 2, .heads = 2, .mlp_width = 5, .affine = true};

// ids through an embedding and a recurrent layer; logits for every step.
template <class Layer> struct LanguageModel : Module {
  Embedding& table = add("table", Embedding(5, 3));
  Layer& layer;
  Linear& head;
  explicit LanguageModel(const RecurrentOptions& o)
      : layer(add("layer", Layer(o))), head(add("head", Linear(o.hidden * (o.bidirectional ? 2 : 1), 5))) {}
  Tensor operator()(const Tensor& ids, const Tensor& mask = {}) {
    const ModuleScope scope(*this);
    return head(layer(table(ids), {.mask = mask}).output);
  }
};

const Tensor kIds = tensor({{0, 3, 1, 4}, {2, 2, 0, 1}}), kNext = tensor({{3, 1, 4, 2}, {2, 0, 1, 3}});

}  // namespace

TEST_CASE("second gradients: a Gpt's Hessian, with attention, norms, tables and rotary positions") {
  for (const bool modern : {false, true}) {
    TransformerOptions t = kTiny;
    if (modern)
      t.width = 8, t.positions = Positions::rotary, t.norm = NormKind::rms, t.activation = Activation::swiglu,
      t.kv_heads = 1, t.qk_norm = NormKind::rms;
    Gpt model({.vocab = 5, .context = 4, .tied = modern, .transformer = t});
    draw(model, 3);
    check_hessian(model.parameters(), [&] { return cross_entropy(model(kIds), kNext); });
  }
}

TEST_CASE("second gradients: a Vit's Hessian by parameters and pixels together") {
  Vit model({.image = 4, .patch = 2, .classes = 3, .transformer = kTiny});
  draw(model, 4);
  const Tensor images = require_grad(randn({2, 4, 4, 1}, kF64)), labels = tensor({2, 0});
  std::vector<Tensor> leaves = model.parameters();
  leaves.push_back(images);
  check_hessian(leaves, [&] { return cross_entropy(model(images), labels); });
}

TEST_CASE("second gradients: language models with LSTM and GRU, stacked, in both directions, with padding") {
  LanguageModel<Lstm> lstm({.inputs = 3, .hidden = 4, .layers = 2});
  draw(lstm, 5);
  check_hessian(lstm.parameters(), [&] { return cross_entropy(lstm(kIds), kNext); });
  const Tensor mask = tensor({{1, 1, 1, 1}, {1, 1, 0, 0}}).to(DType::f64);
  LanguageModel<Gru> gru({.inputs = 3, .hidden = 4, .bidirectional = true, .norm = NormKind::layer});
  draw(gru, 6);
  check_hessian(gru.parameters(), [&] { return cross_entropy(gru(kIds, mask), kNext); });
}

TEST_CASE("second gradients: a convolutional net with BatchNorm, pooling and transposed convolution") {
  Sequential model(Conv2d(1, 3, 3, {.padding = 1}), BatchNorm(3), Tanh(), AvgPool2d(2),
                   ConvTranspose2d(3, 2, 3, {.stride = 2, .padding = 1, .output_padding = 1}), GroupNorm(1, 2), Gelu(),
                   Upsample({.size = 5, .mode = Interpolation::bilinear}), AdaptiveAvgPool2d(3), Flatten(),
                   Linear(18, 3));
  draw(model, 7);
  const Tensor images = require_grad(randn({3, 4, 4, 1}, kF64)), labels = tensor({2, 0, 1});
  std::vector<Tensor> leaves = model.parameters();
  leaves.push_back(images);
  check_hessian(leaves, [&] { return cross_entropy(model(images), labels); });
  model.eval();
  check_hessian(leaves, [&] { return cross_entropy(model(images), labels); });
}

TEST_CASE("second gradients: a model that computes in bf16 is refused with the op's name and the dtype") {
  const auto refusal = [](Module& model, const Tensor& loss) {
    return test::thrown([&] { grad(std::vector<Tensor>{loss}, model.parameters(), {}, {.create_graph = true}); });
  };
  TransformerOptions low = kTiny;
  low.precision = {Precision::bf16, Precision::full};
  Gpt gpt({.vocab = 5, .context = 4, .transformer = low});
  CHECK(refusal(gpt, cross_entropy(gpt(kIds), kNext)) == "linear: it has no second derivative in bf16 (create_graph)");
  Sequential conv(Conv2d(1, 3, 3), Tanh(), ConvTranspose2d(3, 2, 2));
  const Tensor images = randn({2, 4, 4, 1}).to(DType::bf16);
  CHECK(refusal(conv, sum(conv(images))) == "conv_transpose2d: it has no second derivative in bf16 (create_graph)");
  LanguageModel<Lstm> lstm({.inputs = 3, .hidden = 4});
  lstm.to(DType::bf16);
  const std::string line = refusal(lstm, cross_entropy(lstm(kIds), kNext));
  CHECK(line == "lstm_step: it has no second derivative in bf16 (create_graph)");
}

TEST_CASE(
    "second gradients: fused ops in bf16 are refused with the same sentence on CPUs that compute them by other ops") {
  // ISONORM_ISA selects a CPU without bf16 products (tests/CMakeLists.txt). Such a CPU computes attention, and an MLP
  // of few rows, in f32.
  const auto refusal = [](const Tensor& x, const Tensor& y) {
    return test::thrown([&] { grad(std::vector<Tensor>{sum(y)}, std::vector<Tensor>{x}, {}, {.create_graph = true}); });
  };
  const auto leaf = [](const Dims& shape) { return require_grad(randn(shape).to(DType::bf16)); };
  const Tensor q = leaf({1, 2, 3, 4}), packed = leaf({1, 3, 24}), x = leaf({3, 4});
  CHECK(refusal(q, scaled_dot_product_attention(q, q, q)) ==
        "scaled_dot_product_attention: it has no second derivative in bf16 (create_graph)");
  CHECK(refusal(packed, packed_attention(packed, 2)) ==
        "packed_attention: it has no second derivative in bf16 (create_graph)");
  const Tensor w1 = leaf({5, 4}), b1 = leaf({5}), w2 = leaf({2, 5}), b2 = leaf({2});
  CHECK(refusal(x, mlp(x, w1, b1, w2, b2)) == "mlp: it has no second derivative in bf16 (create_graph)");
}
