// The features of the one Transformer: rotary positions, SwiGLU, none of either, and what the options refuse.
#include "streams/transformer.h"
#include "tests/support/catch.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "io/safetensors.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;
using streams::Stored;

namespace {
constexpr TensorOptions kF64{DType::f64};

std::vector<std::string> names(const Module& m) {
  std::vector<std::string> out;
  for (const NamedParameter& p : m.named_parameters()) out.push_back(p.name);
  return out;
}
}  // namespace

TEST_CASE("a model with rotary positions and SwiGLU has PyTorch's logits and gradients") {
  // tests/fixtures/torch_llama.py. Plain RMSNorm is the mapped storage of an rms_norm stream.
  const TensorMap fixture = load_safetensors("tests/fixtures/llama.safetensors");
  Gpt model = streams::make<Gpt>({.vocab = 11,
                                  .context = 7,
                                  .transformer = {.width = 10,
                                                  .depth = 2,
                                                  .heads = 2,
                                                  .head_width = 4,
                                                  .mlp_width = 14,
                                                  .activation = Activation::swiglu,
                                                  .positions = Positions::rotary,
                                                  .rotary_base = 100,
                                                  .affine = true,
                                                  .bias = false,
                                                  .eps = 1e-6}},
                                 {.form = Form::rms_norm, .storage = Stored::mapped});
  model.to(DType::f64);
  TensorMap weights;
  for (const auto& [name, tensor] : fixture)
    if (name.starts_with("weight/")) weights.add(name.substr(7), tensor);
  model.load_state_dict(weights);
  const Tensor tokens = fixture.at("tokens");
  const Tensor logits = model(slice(tokens, 1, 0, 7));
  check_close(logits, fixture.at("logits"), 1e-13);
  const Tensor loss = cross_entropy(logits, slice(tokens, 1, 1, 8));
  check_close(loss, fixture.at("loss"), 1e-14);
  backward(loss);
  for (const NamedParameter& p : model.named_parameters()) {
    INFO(p.name);
    check_close(p.tensor.grad(), fixture.at("gradient/" + p.name), 1e-12);
  }
}

TEST_CASE("without positions the order of tokens does not matter") {
  // To a ViT that pools the mean, with the rows of patches moved around.
  const auto change = [](Positions positions) {
    manual_seed(4);
    Vit model({.image = 6,
               .patch = 2,
               .classes = 3,
               .mean_pool = true,
               .transformer = {.width = 8, .depth = 1, .heads = 2, .positions = positions}});
    model.to(DType::f64);
    const Tensor image = randn({1, 6, 6, 1}, kF64);
    const Tensor moved = cat({slice(image, 1, 2, 6), slice(image, 1, 0, 2)}, 1);  // rows of patches change places
    return relative_deviation(model(moved), model(image));
  };
  CHECK(change(Positions::none) < 64 * 0x1p-52);
  CHECK(change(Positions::rotary) > 1e-4);
  CHECK(change(Positions::learned) > 1e-4);
}

TEST_CASE("the bias of keys is blind unless rotary positions turn it") {
  for (const Positions positions : {Positions::learned, Positions::rotary}) {
    manual_seed(6);
    Gpt model({.vocab = 9, .context = 5, .transformer = {.width = 8, .depth = 1, .heads = 2, .positions = positions}});
    model.to(DType::f64);
    backward(cross_entropy(model(randint(0, 9, {3, 5})), randint(0, 9, {3, 5})));
    for (const NamedParameter& p : model.named_parameters()) {
      if (p.name != "blocks.0.attn.qkv.bias") continue;
      const double keys = amax(abs(narrow(p.tensor.grad(), 0, 8, 8))).item(), all = amax(abs(p.tensor.grad())).item();
      if (positions == Positions::learned) {
        CHECK((p.blind_begin == 8 && p.blind_end == 16));
        CHECK(keys < 1e-14 * all);
      } else {
        CHECK(p.blind_begin == p.blind_end);
        CHECK(keys > 1e-4 * all);
      }
    }
  }
}

TEST_CASE("parameters follow the options") {
  const auto with = [](TransformerOptions t) {
    t.width = 7, t.depth = 1, t.heads = 1;
    return names(Gpt({.vocab = 5, .context = 4, .tied = true, .transformer = t}));
  };
  using Names = std::vector<std::string>;
  CHECK(with({.activation = Activation::swiglu, .positions = Positions::none, .bias = false}) ==
        Names{"token.weight", "blocks.0.attn.qkv.weight", "blocks.0.attn.proj.weight", "blocks.0.mlp.gate.weight",
              "blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc2.weight"});
  CHECK(with({.affine = true, .bias = false, .final_norm = false, .branch = {.layer_scale = 0.1}}) ==
        Names{"token.weight", "position.weight", "blocks.0.norm1.weight", "blocks.0.norm1.bias",
              "blocks.0.attn.qkv.weight", "blocks.0.attn.proj.weight", "blocks.0.attn.proj.scale",
              "blocks.0.norm2.weight", "blocks.0.norm2.bias", "blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc2.weight",
              "blocks.0.mlp.fc2.scale"});
  for (const auto& p : Vit({.transformer = {.width = 6, .depth = 1, .heads = 1, .bias = false}}).named_parameters()) {
    INFO(p.name);
    CHECK_FALSE(p.name.ends_with("bias"));
  }
}

TEST_CASE("generation runs past the context with rotary positions") {
  manual_seed(2);
  Gpt model(
      {.vocab = 7, .context = 4, .transformer = {.width = 8, .depth = 1, .heads = 2, .positions = Positions::rotary}});
  Generator generator{.seed = 1};
  const std::vector<int64_t> ids =
      generate(model, from_vector<int64_t>({1, 2}, {2}), {.length = 8, .temperature = 0}, generator)
          .to_vector<int64_t>();
  REQUIRE(ids.size() == 10);
  const Tensor last = model(from_vector<int64_t>({ids.begin() + 5, ids.begin() + 9}, {1, 4}));
  CHECK(ids[9] == argmax(select(select(last, 1, -1), 0, 0)).to_vector<int64_t>()[0]);
}

TEST_CASE("options that do not fit are refused in one line") {
  const auto build = [](TransformerOptions t) { Gpt({.vocab = 5, .context = 4, .transformer = t}); };
  CHECK_THROWS_WITH(build({.width = 10, .heads = 4}), Contains("width 10") && Contains("4 heads"));
  CHECK_THROWS_WITH(build({.width = 9, .heads = 3, .positions = Positions::rotary}), Contains("head_width 3 is odd"));
  CHECK_THROWS_WITH(build({.width = 8, .positions = Positions::rotary, .rotary_base = 0}), Contains("rotary base 0"));
  CHECK_THROWS_WITH(build({.width = 8, .mlp_width = -2}), Contains("mlp_width -2"));
  CHECK_THROWS_WITH(build({.width = 8, .branch = {.dropout = 1}}), Contains("dropout 1"));
  CHECK_THROWS_WITH(build({.width = 8, .branch = {.stochastic_depth = 1.5}}), Contains("stochastic depth"));
  CHECK_THROWS_WITH(build({.width = 8, .branch = {.layer_scale = NAN}}), Contains("layer scale"));
  CHECK_THROWS_WITH(build({.width = 8, .norm = NormKind::crms}), Contains("crms_norm, expected layer_norm"));
  const auto mapped = [](TransformerOptions t, bool tied, bool centred) {
    t.width = 8;
    streams::make<Gpt>({.vocab = 5, .context = 4, .tied = tied, .transformer = t},
                       {.form = Form::rms_norm, .storage = Stored::mapped, .centre_readers = centred});
  };
  CHECK_THROWS_WITH(mapped({.branch = {.dropout = 0.1}}, false, false),
                    Contains("dropout 0.1") && Contains("raw storage"));
  CHECK_THROWS_WITH(mapped({.branch = {.layer_scale = 0.1}}, false, false),
                    Contains("layer scale 0.1") && Contains("raw storage"));
  CHECK_NOTHROW(mapped({.branch = {.stochastic_depth = 0.1}}, false, false));
  CHECK_THROWS_WITH(mapped({.affine = true}, false, true), Contains("gain") && Contains("raw storage"));
  CHECK_THROWS_WITH(mapped({.affine = true}, true, false), Contains("tied") && Contains("gain"));
}
