// Residual connections: initial weights, the kernels that they run, refusals. tests/model_cases compares every
// arrangement with its formula.
#include "core/system/profile.h"
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "nn/residual/all.h"
#include "streams/transformer.h"
#include "tests/nn/models.h"
#include "tests/support/random.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;
using streams::Stored;

namespace {

constexpr int64_t kDepth = 4;

TransformerOptions transformer(const Arrangement& connection) {
  return {.width = 6, .depth = kDepth, .heads = 2, .mlp_width = 7, .affine = true, .connection = connection};
}

}  // namespace

TEST_CASE("initial weights of DeepNorm, with gates too, and of Sub-LN are Xavier's, scaled where their papers say") {
  for (const Arrangement& a : {kDeepNorm, kDeepPostGpas, kSubLn}) {
    INFO(a.name);
    manual_seed(9);
    const int64_t d = 96, hidden = 160, depth = 3;
    TransformerOptions t{.width = d, .depth = depth, .heads = 2, .head_width = 32, .mlp_width = hidden};
    t.activation = Activation::swiglu, t.connection = a;
    const Gpt model({.vocab = 5, .context = 4, .transformer = t});
    const TensorMap state = model.state_dict();
    const double gain = a == kSubLn ? std::sqrt(std::log(2.0 * depth)) : std::pow(8.0 * depth, -0.25);
    const auto check_xavier = [](const Tensor& w, double g) {
      check_deviation(w, g * std::sqrt(2.0 / static_cast<double>(w.size(0) + w.size(1))));
    };
    for (int64_t block = 0; block < depth; ++block) {
      const auto weight = [&](const char* name) { return state.at(text("blocks.", block, ".", name, ".weight")); };
      const Tensor qkv = weight("attn.qkv");
      for (int64_t third = 0; third < 3; ++third)
        check_xavier(detached::narrow(qkv, 0, third * 64, 64), third < 2 ? 1 : gain);
      for (const char* name : {"attn.proj", "mlp.fc1", "mlp.gate", "mlp.fc2"}) {
        check_xavier(weight(name), gain);
        // Biases keep the default of Linear: uniform within 1 / sqrt(inputs). The largest of 96 comes close to that.
        const double bound = 1 / std::sqrt(static_cast<double>(weight(name).size(1))),
                     most = largest(state.at(text("blocks.", block, ".", name, ".bias")));
        CHECK(most <= bound);
        CHECK(most > 0.85 * bound);
      }
    }
  }
}

TEST_CASE("gains begin at 1/sqrt(l) in block l, and at 1 in the head") {
  manual_seed(1);
  const Gpt model(
      {.vocab = 7,
       .context = 6,
       .transformer = {.width = 8, .depth = 5, .heads = 2, .affine = true, .norm_bias = false, .scaled_gains = true}});
  int gains = 0;
  for (const NamedParameter& p : model.named_parameters()) {
    if (p.tensor.rank() != 1 || p.name.find("norm") == std::string::npos) continue;
    INFO(p.name);
    const bool block = p.name.starts_with("blocks.");
    const double wanted = block ? 1 / std::sqrt(1.0 + (p.name[7] - '0')) : 1;
    for (float v : p.tensor.to_vector<float>()) CHECK(v == static_cast<float>(wanted));
    ++gains;
  }
  CHECK(gains == 2 * 5 + 1);
  // With two stacks, each counts its own blocks. The decoder's third norm is scaled, too.
  const EncoderDecoder two(
      {.decoder_depth = 3, .transformer = {.width = 8, .depth = 2, .heads = 2, .affine = true, .scaled_gains = true}});
  const TensorMap state = two.state_dict();
  CHECK(state.at("encoder.1.norm2.weight").to_vector<float>()[7] == static_cast<float>(1 / std::sqrt(2.0)));
  CHECK(state.at("decoder.2.cross_norm.weight").to_vector<float>()[0] == static_cast<float>(1 / std::sqrt(3.0)));
  CHECK(state.at("decoder.2.norm1.bias").to_vector<float>() == std::vector<float>(8, 0));
  CHECK(state.at("encoder_norm.weight").to_vector<float>() == std::vector<float>(8, 1));
  CHECK_THROWS_WITH(Gpt({.transformer = {.scaled_gains = true}}), "transformer: scaled gains need affine norms");
}

TEST_CASE("two branches that join one after the other are both added, whatever was read") {
  const Tensor x = from_vector<double>({1, 2}, {2}), a = from_vector<double>({10, 20}, {2}),
               b = from_vector<double>({300, 100}, {2});
  for (const bool post : {false, true}) {
    const std::unique_ptr<Connection> first = block_of<PreNorm>(2, {}, {}).attention;
    const std::unique_ptr<Connection> second = (post ? block_of<PostNorm> : block_of<PreNorm>)(2, {}, {}).attention;
    Residual r{x, {}};
    first->join(r, a);
    second->join(r, b);
    // LayerNorm of (311, 122) is (1, -1) up to eps / (2 variance).
    const auto found = r.settle().to_vector<double>();
    CHECK(std::abs(found[0] - (post ? 1 : 311)) < 1e-8);
    CHECK(std::abs(found[1] - (post ? -1 : 122)) < 1e-8);
  }
}

TEST_CASE("the residual addition is fused with the norm: before it in Pre-LN, after it in Post-LN") {
  const auto profile_of = [](const Arrangement& residual) {
    Gpt model({.vocab = 5, .context = 4, .transformer = transformer(residual)});
    profile::start();
    backward(sum(model(randint(0, 5, {2, 4}))));
    return profile::stop();
  };
  // Checks which modules' norms run, in this order, and that no other kernel adds anything in the blocks.
  const auto check = [&](const Arrangement& residual, const std::vector<std::string>& norms) {
    std::vector<std::string> forward, backward;
    for (const profile::Call& c : profile_of(residual).calls) {
      const std::string kernel = c.kernel;
      if (kernel.starts_with("norm_")) (c.backward ? backward : forward).push_back(c.module);
      CHECK_FALSE((kernel == "binary" && !c.backward && c.module.find("blocks") != std::string::npos));
    }
    CHECK(forward == norms);
    CHECK(backward.size() == norms.size());
  };
  std::vector<std::string> norms;
  for (int64_t block = 0; block < kDepth; ++block)
    for (const char* norm : {"norm1", "norm2"}) norms.push_back(text("blocks.", block, ".", norm));
  check(kPostLn, norms);
  norms.push_back("norm");
  check(kPreLn, norms);
}

TEST_CASE("a branch is broadcast to the stream, or refused when it is added") {
  const Tensor positions = require_grad(test::randn({3, 4}, 1)), rows = test::randn({2, 3, 4}, 2);
  Residual x = rows;
  x += positions;
  const Tensor& y = x.settle();
  check_close(y, rows + positions, 0);
  backward(sum(y * rows));
  check_close(positions.grad(), sum(rows, {0}), 1e-15);
  CHECK_THROWS_WITH(x += test::randn({5, 4}, 3), Contains("residual +=: shapes [5, 4] and [2, 3, 4] do not broadcast"));
  CHECK_THROWS_WITH(
      x += test::randn({3, 2, 3, 4}, 3),
      Contains("residual +=: a branch of shape [3, 2, 3, 4] does not broadcast to the residual stream [2, 3, 4]"));
  CHECK_THROWS_WITH(x += Tensor(), Contains("residual +=: the branch is undefined"));
  CHECK_THROWS_WITH(x += to(rows, DType::f32), Contains("residual +=: the branch is f32, the residual stream f64"));
}

TEST_CASE("impossible arrangements are refused in a line") {
  const auto build = [](const Arrangement& a, TransformerOptions t) {
    t.width = 8, t.heads = 2, t.connection = a;
    return Gpt({.vocab = 5, .context = 4, .transformer = t});
  };
  for (const Arrangement& a : {kMixLn, kPostPreGpas})
    CHECK_THROWS_WITH(build(a, {.depth = 3}), text(a.name, ": a quarter of 3 blocks is none, expected at least 4"));
  CHECK_THROWS_WITH(deep_norm_block(4, {}, {.index = 0, .depth = 0}),
                    "deepnorm: block 0 of 0, expected one of 0 to depth - 1");
  for (const Arrangement& a : {kPostLn, kDeepNorm, kResiDual, kMixLn, kDeepPostGpas, kPostPreGpas}) {
    CHECK_THROWS_WITH(build(a, {.depth = 4, .norm = NormKind::none}),
                      "post-normalised connections need a norm, the norm is none");
    CHECK_THROWS_WITH(streams::make<Gpt>({.transformer = transformer(a)}, {.centre_readers = true}),
                      Contains("readers are to be centred"));
  }
  CHECK_THROWS_WITH(streams::make<Gpt>({.tied = true, .transformer = {.depth = 1, .connection = kPostLn}},
                                       {.form = Form::rms_norm, .storage = Stored::mapped}),
                    Contains("needs raw storage"));
  CHECK_THROWS_WITH(build(kResiDual, {.depth = 1, .affine = true, .final_norm = false}),
                    "residual: with affine norms the last norm cannot be left out");
}
