// Models of the LLaMA family: rotary positions, SwiGLU, grouped-query attention, gains without biases, presets and
// initial weights.
#include "io/safetensors.h"
#include "nn/residual/all.h"
#include "streams/transformer.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;
using streams::Stored;

TEST_CASE("models have PyTorch's logits and gradients: rotary positions and SwiGLU, and with shared keys") {
  // From tests/fixtures/torch_llama.py. RMSNorm by definition, with a bias, is the mapped storage of an rms_norm
  // stream.
  for (const char* file : {"llama", "grouped"}) {
    const TensorMap fixture = load_safetensors(text("tests/fixtures/", file, ".safetensors"));
    TransformerOptions t{
        .width = 10, .depth = 2, .heads = 2, .head_width = 4, .mlp_width = 14, .bias = false, .eps = 1e-6};
    t.activation = Activation::swiglu, t.positions = Positions::rotary, t.rotary_base = 100, t.affine = true;
    const bool grouped = std::string_view(file) == "grouped";
    if (grouped) {
      t.heads = 6, t.kv_heads = 2, t.positions = Positions::rotary_halves;
      t.norm_bias = false, t.norm = NormKind::rms;
    }
    const GptOptions o{.vocab = 11, .context = 7, .transformer = t};
    Gpt model = grouped ? Gpt(o) : streams::make<Gpt>(o, {.form = Form::rms_norm, .storage = Stored::mapped});
    model.to(DType::f64);
    model.load_state_dict(below(fixture, "weight/"));  // the model has no other tensors
    const Tensor tokens = fixture.at("tokens"), logits = model(slice(tokens, 1, 0, 7));
    check_close(logits, fixture.at("logits"), 1e-13);
    backward(cross_entropy(logits, slice(tokens, 1, 1, 8)));
    for (const NamedParameter& p : model.named_parameters()) {
      INFO(file << ": " << p.name);
      check_close(p.tensor.grad(), fixture.at("gradient/" + p.name), 1e-12);
    }
  }
}

TEST_CASE("LLaMA presets have the published numbers of parameters") {
  // Vocabulary, four square matrices, three MLP matrices and two gains per block, and the last gain.
  const auto count = [](const GptOptions& o) {
    const TransformerOptions& t = o.transformer;
    const int64_t block = 4 * t.width * t.width + 3 * t.width * t.mlp_width + 2 * t.width;
    return 2 * o.vocab * t.width + t.depth * block + t.width;
  };
  Gpt smallest(llama_preset("9m"));
  CHECK(smallest.parameter_count() == count(smallest.options));
  // Published in the design notes of 2506.22049's code: PyTorch's parameter counts for its shapes.
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
  const auto check = [](const Module& model, auto&& expected) {
    for (const NamedParameter& p : model.named_parameters()) {
      if (p.tensor.rank() != 2) continue;
      INFO(p.name);
      check_deviation(p.tensor, expected(p.name));
    }
  };
  const auto gpt = [](TransformerOptions t) {
    t.width = 64, t.depth = 8, t.heads = 2, t.activation = Activation::swiglu;
    manual_seed(3);
    return Gpt({.vocab = 70, .context = 65, .transformer = t});
  };
  const auto table = [](const std::string& name) { return name.starts_with("token") || name.starts_with("position"); };
  const auto writer = [](const std::string& name) {
    return name.ends_with("proj.weight") || name.ends_with("fc2.weight");
  };
  check(gpt({.initialisation = Initialisation::normal}),
        [&](const std::string& name) { return table(name) ? std::sqrt(0.4) : 0.02; });
  check(gpt({.initialisation = Initialisation::scaled}), [&](const std::string& name) {
    return table(name) ? std::sqrt(0.4) : writer(name) ? 0.02 / 4 : 0.02;
  });
  // Two stacks: each scales by its own depth.
  const EncoderDecoder both(
      {.vocab = 70,
       .decoder_depth = 8,
       .transformer = {.width = 64, .depth = 2, .heads = 2, .initialisation = Initialisation::scaled}});
  for (const NamedParameter& p : both.named_parameters())
    if (p.name.ends_with("fc2.weight")) check_deviation(p.tensor, p.name.starts_with("decoder") ? 0.02 / 4 : 0.02 / 2);
  // DeepNorm's matrices keep their own values: Xavier's times (8 depth)^(-1/4) = 64^(-1/4), without factor for queries
  // and keys.
  const Gpt deep = gpt({.connection = kDeepNorm, .initialisation = Initialisation::normal});
  for (const NamedParameter& p : deep.named_parameters())
    if (p.name.ends_with("proj.weight")) check_deviation(p.tensor, std::sqrt(2.0 / 128) / std::sqrt(8.0));
  // ViT: patches and head are initialised as matrices, positions as an embedding table.
  check(Vit({.image = 48,
             .patch = 4,
             .transformer = {.width = 64, .depth = 1, .heads = 2, .initialisation = Initialisation::normal}}),
        [](const std::string& name) { return name == "position" ? std::sqrt(0.4) : 0.02; });
}

TEST_CASE("the tables of a model with a tied head have standard deviation 0.02") {
  for (const Initialisation i : {Initialisation::by_layer, Initialisation::normal, Initialisation::scaled})
    for (const bool tied : {false, true}) {
      INFO(name_of(i) << (tied ? ", tied" : ""));
      const TransformerOptions t{.width = 64, .depth = 1, .initialisation = i};
      const Gpt model({.vocab = 1000, .context = 100, .tied = tied, .transformer = t});
      for (const char* table : {"token.weight", "position.weight"})
        check_deviation(model.state_dict().at(table), tied ? 0.02 : i == Initialisation::by_layer ? 1 : std::sqrt(0.4));
    }
}
