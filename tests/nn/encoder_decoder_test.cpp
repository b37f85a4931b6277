// The encoder-decoder: constants of its arrangements, padding, refusals. tests/model_cases compares it with PyTorch.
#include "nn/residual/all.h"
#include "streams/transformer.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::centred_forms;
using streams::Form;
using streams::Stored;

namespace {

constexpr int64_t kVocab = 9, kContext = 5;

EncoderDecoderOptions options(const Arrangement& a) {
  return {.vocab = kVocab,
          .context = kContext,
          .decoder_depth = 5,
          .transformer = {.width = 6, .depth = 4, .heads = 2, .mlp_width = 10, .affine = true, .connection = a}};
}

// 60 consecutive sums of at most 10 terms; norms of a few zero-mean numbers enlarge rounding by at most 100.
const double kRounding = 60 * std::sqrt(10) * 100 * 0x1p-52;

}  // namespace

// tests/nn/torch_modules_test.cpp compares the outputs with shared keys with PyTorch.
TEST_CASE("translate: all attention shares keys, and the key bias of cross-attention is blind") {
  EncoderDecoderOptions o = options(kPreLn);
  o.transformer.heads = 4, o.transformer.head_width = 3, o.transformer.kv_heads = 2;
  const EncoderDecoder model(o);
  CHECK(parameter(model, "encoder.0.attn.qkv.weight").tensor.shape() == Dims{12 + 2 * 6, 6});
  CHECK(parameter(model, "decoder.0.attn.qkv.weight").tensor.shape() == Dims{12 + 2 * 6, 6});
  CHECK(parameter(model, "decoder.0.cross.kv.weight").tensor.shape() == Dims{2 * 6, 6});
  const NamedParameter bias = parameter(model, "decoder.0.cross.kv.bias");
  CHECK((bias.blind_begin == 0 && bias.blind_end == 6));
}

TEST_CASE("translate: constants of stacks that know each other") {
  const BlockPlace encoder{.depth = 6, .stack = Stack::encoder, .other_depth = 18},
      decoder{.depth = 18, .stack = Stack::decoder, .other_depth = 6}, alone{.depth = 8};
  // 2203.00555, figure 2: 0.81 (N^4 M)^(1/16) with N^4 M = 23328, 0.87 (...)^(-1/16), (3M)^(1/4), (12M)^(-1/4).
  // 2210.06423, figure 2: sqrt(ln 54 ln 12 / 3), sqrt(ln 54), sqrt(ln 16).
  for (const auto& [place, alpha, beta, gain] : {std::tuple{encoder, 1.5187188, 0.4640095, 1.8177140},
                                                 {decoder, 2.710806, 0.2608474, 1.997246},
                                                 {alone, 2.0, 0.3535534, 1.665109}}) {
    CHECK(deep_norm_alpha(place) == Approx(alpha).epsilon(1e-6));
    CHECK(deep_norm_beta(place) == Approx(beta).epsilon(1e-6));
    CHECK(sub_ln_gain(place) == Approx(gain).epsilon(1e-6));
  }
  CHECK(deep_norm_alpha(alone) == 2);
  CHECK_THROWS_WITH(deep_norm_block(4, {}, {.stack = Stack::encoder}),
                    "deepnorm: the other of the two stacks has 0 blocks, expected at least 1");
  // In cross-attention, initial weights in Sub-LN are Xavier's; in DeepNorm, values and output are scaled by beta.
  int looked_at = 0;
  for (const Arrangement& a : {kSubLn, kDeepNorm}) {
    manual_seed(3);
    const EncoderDecoder model({.decoder_depth = 18, .transformer = {.width = 64, .depth = 6, .connection = a}});
    for (const NamedParameter& p : model.named_parameters()) {
      const bool cross = p.name.find("cross.") != std::string::npos;
      if (p.tensor.rank() != 2 || (!cross && !p.name.ends_with("attn.proj.weight"))) continue;
      INFO(a.name << ", " << p.name);
      const BlockPlace& place = p.name.starts_with("encoder") ? encoder : decoder;
      const double gain = a == kDeepNorm ? deep_norm_beta(place) : cross ? 1 : sub_ln_gain(place);
      // 64 rows at a time: queries, keys, values or output. Queries and keys are not scaled.
      for (int64_t row = 0; row < p.tensor.size(0); row += 64) {
        const bool bare = p.name.ends_with("q.weight") || (p.name.ends_with("kv.weight") && row == 0);
        check_deviation(detached::narrow(p.tensor, 0, row, 64), (bare ? 1 : gain) * std::sqrt(2.0 / 128));
        ++looked_at;
      }
    }
  }
  CHECK(looked_at == 2 * (6 + 18 + 4 * 18));
}

TEST_CASE("translate: padding is not seen, later targets neither") {
  EncoderDecoder model(options(kPreLn));
  draw(model, 5);
  const NoGrad no_grad;
  const Tensor source = from_vector(std::vector<int64_t>{3, 4, 0, 0, 0}, {1, 5}),
               target = from_vector(std::vector<int64_t>{1, 5, 6, 7, 0}, {1, 5});
  const Tensor logits = model(cat({source, target}, 1));
  // Without the padding, and with fewer targets: the same sums.
  check_close(model.decode(model.encode(narrow(source, 1, 0, 2)), narrow(target, 1, 0, 3)), narrow(logits, 1, 0, 3),
              kRounding);
  CHECK_THROWS_WITH(model.encode(from_vector(std::vector<int64_t>{3, 4, 0, 0}, {2, 2})),
                    "encoder-decoder: source 1 has only padding");
  CHECK_THROWS_WITH(model.encode(empty({2, 0}, {DType::i64})),
                    Contains("ids have shape [2, 0], expected [batch, 1 to 5]"));
  check_close(model(cat({narrow(source, 1, 0, 3), narrow(target, 1, 0, 3)}, 1)), narrow(logits, 1, 0, 3), kRounding);
  for (const int64_t length : {7, 12})
    CHECK_THROWS_WITH(model(randint(1, 9, {2, length})), Contains("expected [batch, 2 x time], time at most 5"));
  CHECK_THROWS_WITH(EncoderDecoder({.pad = 256}), Contains("padding 256 is not an id below 256"));
  CHECK_THROWS_WITH(EncoderDecoder({.transformer = {.depth = 0}}), Contains("depth 0"));
  const TransformerOptions block = options(kPreLn).transformer.complete();
  TransformerOptions two = block;
  two.connection.block = [](int64_t width, const ConnectionOptions& n, const BlockPlace&) {
    return block_of<PreNorm>(width, n, {});
  };
  CHECK_THROWS_WITH(TransformerBlock(two, {.stack = Stack::decoder, .other_depth = 1}),
                    "block: connections pre_ln have no cross-attention for a decoder");
  model.train();
  CHECK_THROWS_WITH(translate(model, from_vector(std::vector<int64_t>{0, 0}, {1, 2}), {.length = 2}),
                    Contains("has only padding"));
  CHECK(model.training());
  CHECK_THROWS_WITH(translate(model, from_vector(std::vector<int64_t>{1}, {1}), {.length = 2}),
                    Contains("sources have shape [1]"));
  CHECK_THROWS_WITH(EncoderDecoder({.decoder_depth = -1}), Contains("a decoder of -1 blocks"));
  CHECK_THROWS_WITH(streams::make<EncoderDecoder>({.tied = true, .transformer = {.connection = kPostLn}},
                                                  {.form = Form::crms_norm, .storage = Stored::mapped}),
                    Contains("tied head 'head'") && Contains("needs raw storage"));
}

TEST_CASE("translate: a search with impossible options is refused in one line") {
  EncoderDecoder model({.vocab = 4, .context = 3, .transformer = {.width = 6, .depth = 1, .heads = 2}});
  const Tensor source = randint(1, 4, {1, 3});
  CHECK_THROWS_WITH(translate(model, source, {.length = 4}), Contains("1 beams of 4 ids"));
  CHECK(translate(model, source).size() == 1);  // `length` is the context by default
  CHECK_NOTHROW(translate(model, source, {.length = 1, .beams = INT64_MAX}));
  for (const double penalty : {-0.1, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    CHECK_THROWS_WITH(translate(model, source, {.length_penalty = penalty}),
                      Contains("the length penalty is") && Contains("expected a finite number of at least 0"));
  CHECK_THROWS_WITH(model.decode(model.encode(randint(1, 4, {2, 3})), randint(1, 4, {3, 2})),
                    "encoder-decoder: 2 sources are encoded, the targets have shape [3, 2]");
  fill(model.parameters().front(), NAN);
  CHECK_THROWS_WITH(translate(model, source), "translate: the model's scores of id 1 are NaN");
  CHECK_THROWS_WITH(translate(model, source, {.begin = 4, .length = 3}), Contains("ids 4 and 2"));
}
