// Models of the LLaMA family: heads that share keys and values, gains without biases, rotation in halves, presets and
// initial weights.
#include "tests/support/catch.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "io/safetensors.h"
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "nn/residual/all.h"
#include "nn/vit.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

TEST_CASE("grouped: a model of shared keys has PyTorch's logits and gradients") {
  const TensorMap fixture = load_safetensors("tests/fixtures/grouped.safetensors");  // torch_llama.py
  Gpt model({.vocab = 11,
             .context = 7,
             .transformer = {.width = 10,
                             .depth = 2,
                             .heads = 6,
                             .head_width = 4,
                             .kv_heads = 2,
                             .mlp_width = 14,
                             .activation = Activation::swiglu,
                             .positions = Positions::rotary_halves,
                             .rotary_base = 100,
                             .affine = true,
                             .norm_bias = false,
                             .bias = false,
                             .norm = NormKind::rms,
                             .eps = 1e-6}});
  model.to(DType::f64);
  TensorMap weights;
  for (const auto& [name, tensor] : fixture)
    if (name.starts_with("weight/")) weights.add(name.substr(7), tensor);
  model.load_state_dict(weights);  // which are all that it has
  const Tensor tokens = fixture.at("tokens"), logits = model(slice(tokens, 1, 0, 7));
  check_close(logits, fixture.at("logits"), 1e-13);
  backward(cross_entropy(logits, slice(tokens, 1, 1, 8)));
  for (const NamedParameter& p : model.named_parameters()) {
    INFO(p.name);
    check_close(p.tensor.grad(), fixture.at("gradient/" + p.name), 1e-12);
  }
}

TEST_CASE("grouped: the blind part of the bias is that of the shared keys") {
  manual_seed(6);
  Gpt model({.vocab = 9, .context = 5, .transformer = {.width = 8, .depth = 1, .heads = 4, .kv_heads = 2}});
  model.to(DType::f64);
  backward(cross_entropy(model(randint(0, 9, {3, 5})), randint(0, 9, {3, 5})));
  const NamedParameter bias = [&] {
    for (const NamedParameter& p : model.named_parameters())
      if (p.name == "blocks.0.attn.qkv.bias") return p;
    return NamedParameter{};
  }();
  REQUIRE(bias.tensor.shape() == Dims{16});
  CHECK((bias.blind_begin == 8 && bias.blind_end == 12));
  const auto most = [&](int64_t begin, int64_t n) { return amax(abs(narrow(bias.tensor.grad(), 0, begin, n))).item(); };
  CHECK(most(8, 4) < 1e-14 * most(0, 16));
  CHECK(most(12, 4) > 1e-4 * most(0, 16));
  CHECK_THROWS_WITH(Gpt({.transformer = {.width = 8, .heads = 4, .kv_heads = 3}}),
                    Contains("4 heads cannot share 3 of keys and values"));
  CHECK_THROWS_WITH(Gpt({.transformer = {.width = 8, .heads = 4, .kv_heads = -1}}), Contains("share -1"));
}

TEST_CASE("LLaMA presets have the published numbers of parameters") {
  // Vocabulary, four square matrices, three of the MLP, two gains a block, and the last one.
  const auto count = [](const GptOptions& o) {
    const TransformerOptions& t = o.transformer;
    const int64_t block = 4 * t.width * t.width + 3 * t.width * t.mlp_width + 2 * t.width;
    return 2 * o.vocab * t.width + t.depth * block + t.width;
  };
  Gpt smallest(llama_preset("9m"));
  int64_t held = 0;
  for (const Tensor& p : smallest.parameters()) held += p.numel();
  CHECK(held == count(smallest.options));
  // design notes of 2506.22049's code: torch's numbers of its shapes
  const std::pair<const char*, int64_t> published[] = {{"71m", 70578688},   {"130m", 134105856}, {"250m", 247370496},
                                                       {"350m", 367969280}, {"1b", 1339082752},  {"7b", 6738415616}};
  for (const auto& [name, n] : published) {
    INFO(name);
    CHECK(count(llama_preset(name)) == n);
  }
  CHECK_THROWS_WITH(llama_preset("2b"),
                    "llama_preset: no size is called '2b'; there are 9m, 20m, 35m, 40m, 60m, 71m, "
                    "100m, 130m, 250m, 350m, 1b, 3b, 7b");
}

TEST_CASE("initial weights are drawn from the named distributions") {
  const auto deviations = [](TransformerOptions t, auto&& expected) {
    t.width = 64, t.depth = 8, t.heads = 2, t.activation = Activation::swiglu;
    manual_seed(3);
    const Gpt model({.vocab = 70, .context = 65, .transformer = t});
    for (const NamedParameter& p : model.named_parameters()) {
      if (p.tensor.rank() != 2) continue;
      INFO(p.name);
      const auto n = static_cast<double>(p.tensor.numel());
      const double deviation = std::sqrt(mean(square(p.tensor.to(DType::f64))).item()), wanted = expected(p.name);
      CHECK(std::abs(deviation / wanted - 1) < 6 / std::sqrt(2 * n));  // six standard errors
    }
  };
  const auto table = [](const std::string& name) { return name.starts_with("token") || name.starts_with("position"); };
  const auto writer = [](const std::string& name) {
    return name.ends_with("proj.weight") || name.ends_with("fc2.weight");
  };
  deviations({.initialisation = Initialisation::normal},
             [&](const std::string& name) { return table(name) ? std::sqrt(0.4) : 0.02; });
  deviations({.initialisation = Initialisation::scaled}, [&](const std::string& name) {
    return table(name) ? std::sqrt(0.4) : writer(name) ? 0.02 / 4 : 0.02;
  });
  // Of two stacks, each by its own depth.
  const EncoderDecoder both(
      {.vocab = 70,
       .decoder_depth = 8,
       .transformer = {.width = 64, .depth = 2, .heads = 2, .initialisation = Initialisation::scaled}});
  for (const NamedParameter& p : both.named_parameters())
    if (p.name.ends_with("fc2.weight")) {
      INFO(p.name);
      const double wanted = p.name.starts_with("decoder") ? 0.02 / 4 : 0.02 / 2;
      const double deviation = std::sqrt(mean(square(p.tensor.to(DType::f64))).item());
      CHECK(std::abs(deviation / wanted - 1) < 6 / std::sqrt(2 * static_cast<double>(p.tensor.numel())));
    }
  // DeepNorm's matrices stay its own: Xavier's, times (8 depth)^(-1/4) = 64^(-1/4) but for queries and keys.
  manual_seed(3);
  const Gpt deep(
      {.vocab = 70,
       .transformer = {
           .width = 64, .depth = 8, .heads = 2, .connection = kDeepNorm, .initialisation = Initialisation::normal}});
  for (const NamedParameter& p : deep.named_parameters())
    if (p.name.ends_with("proj.weight")) {
      const double deviation = std::sqrt(mean(square(p.tensor.to(DType::f64))).item());
      CHECK(std::abs(deviation / (std::sqrt(2.0 / 128) / std::sqrt(8.0)) - 1) < 6 / std::sqrt(2 * 4096.0));
    }
  // Of images: patches and head as matrices, positions as a table.
  const Vit vit({.image = 48,
                 .patch = 4,
                 .transformer = {.width = 64, .depth = 1, .heads = 2, .initialisation = Initialisation::normal}});
  for (const NamedParameter& p : vit.named_parameters()) {
    if (p.tensor.rank() != 2) continue;
    INFO(p.name);
    const double deviation = std::sqrt(mean(square(p.tensor.to(DType::f64))).item());
    CHECK(std::abs(deviation / (p.name == "position" ? std::sqrt(0.4) : 0.02) - 1) <
          6 / std::sqrt(2 * static_cast<double>(p.tensor.numel())));
  }
}
