// Options of the Transformer: positions, the parameters that exist, and refused options.
#include "streams/transformer.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;
using streams::Stored;

TEST_CASE("parameters follow the options") {
  const auto with = [](TransformerOptions t) {
    t.width = 7, t.depth = 1, t.heads = 1;
    return names(Gpt({.vocab = 5, .context = 4, .tied = true, .transformer = t}));
  };
  using Names = std::vector<std::string>;
  CHECK(with({.activation = Activation::swiglu, .positions = Positions::none, .bias = false}) ==
        Names{"token.weight", "blocks.0.attn.qkv.weight", "blocks.0.attn.proj.weight", "blocks.0.mlp.gate.weight",
              "blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc2.weight"});
  CHECK(with({.positions = Positions::alibi,
              .parallel = true,
              .shared_norm = true,
              .affine = true,
              .norm_bias = false,
              .bias = false}) == Names{"token.weight", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight",
                                       "blocks.0.attn.proj.weight", "blocks.0.mlp.fc1.weight",
                                       "blocks.0.mlp.fc2.weight", "norm.weight"});
  CHECK(with({.positions = Positions::none,
              .qk_norm = NormKind::rms,
              .affine = true,
              .bias = false,
              .qkv_bias = true,
              .final_norm = false}) ==
        Names{"token.weight", "blocks.0.norm1.weight", "blocks.0.norm1.bias", "blocks.0.attn.qkv.weight",
              "blocks.0.attn.qkv.bias", "blocks.0.attn.q_norm.weight", "blocks.0.attn.k_norm.weight",
              "blocks.0.attn.proj.weight", "blocks.0.norm2.weight", "blocks.0.norm2.bias", "blocks.0.mlp.fc1.weight",
              "blocks.0.mlp.fc2.weight"});
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

TEST_CASE("options that do not fit are refused in one line") {
  const auto build = [](TransformerOptions t) { Gpt({.vocab = 5, .context = 4, .transformer = t}); };
  CHECK_THROWS_WITH(build({.width = 10, .heads = 4}), Contains("width 10") && Contains("4 heads"));
  CHECK_THROWS_WITH(build({.width = 9, .heads = 3, .positions = Positions::rotary}),
                    Contains("head_width 3 has 3 to turn"));
  CHECK_THROWS_WITH(build({.width = 8, .positions = Positions::rotary, .rotary_base = 0}), Contains("rotary base 0"));
  CHECK_THROWS_WITH(build({.width = 8, .shared_norm = true}), Contains("shared by branches that are not parallel"));
  CHECK_THROWS_WITH(Vit({.transformer = {.positions = Positions::alibi}}),
                    Contains("ALiBi is for attention that is causal"));
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
