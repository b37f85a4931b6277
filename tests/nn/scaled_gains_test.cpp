// LayerNorm Scaling as in the released code: learned gains that begin at 1/sqrt(l). Compared with the fixed factor,
// whose formula residual_test.cpp tests.
#include "streams/transformer.h"

#include "nn/residual/all.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;

namespace {

constexpr int64_t kDepth = 5, kVocab = 7, kContext = 6;

Gpt gpt(const Arrangement& a, Form form, bool gains) {
  TransformerOptions t{.width = 8, .depth = kDepth, .heads = 2, .affine = gains, .norm_bias = false};
  t.scaled_gains = gains, t.connection = a;
  return streams::make<Gpt>({.vocab = kVocab, .context = kContext, .transformer = t}, {.form = form});
}

}  // namespace

TEST_CASE("gains begin at 1/sqrt(l) in block l, that of the head at 1") {
  manual_seed(1);
  const Gpt model = gpt(kPreLn, Form::uncentred_rms_norm, true);
  int gains = 0;
  for (const NamedParameter& p : model.named_parameters()) {
    if (p.tensor.rank() != 1 || p.name.find("norm") == std::string::npos) continue;
    INFO(p.name);
    const bool block = p.name.starts_with("blocks.");
    const double wanted = block ? 1 / std::sqrt(1.0 + (p.name[7] - '0')) : 1;
    for (float v : p.tensor.to_vector<float>()) CHECK(v == static_cast<float>(wanted));
    ++gains;
  }
  CHECK(gains == 2 * kDepth + 1);
  // With two stacks, each counts its own blocks. The decoder's third norm is scaled, too.
  const EncoderDecoder two(
      {.decoder_depth = 3, .transformer = {.width = 8, .depth = 2, .heads = 2, .affine = true, .scaled_gains = true}});
  const TensorMap state = two.state_dict();
  CHECK(state.at("encoder.1.norm2.weight").to_vector<float>()[7] == static_cast<float>(1 / std::sqrt(2.0)));
  CHECK(state.at("decoder.2.cross_norm.weight").to_vector<float>()[0] == static_cast<float>(1 / std::sqrt(3.0)));
  CHECK(state.at("decoder.2.norm1.bias").to_vector<float>() == std::vector<float>(8, 0));
  CHECK(state.at("encoder_norm.weight").to_vector<float>() == std::vector<float>(8, 1));
  CHECK_THROWS_WITH(Gpt({.transformer = {.scaled_gains = true}}),
                    "transformer: gains are to begin at 1/sqrt(l), and the norms have none");
}

TEST_CASE("where the gains begin, the model is LayerNorm Scaling's with the fixed factor, and then it is not") {
  for (const auto& [learned, fixed] : {std::pair{kPreLn, kLayerNormScaling}, {kPreGpas, kLnsGpas}})
    for (const Form form : {Form::layer_norm, Form::rms_norm, Form::crms_norm, Form::uncentred_rms_norm}) {
      INFO(fixed.name << ", " << name_of(form));
      Gpt ours = gpt(learned, form, true), paper = gpt(fixed, form, false);
      manual_seed(2);
      TensorMap state;
      // The gains in f64: 1/sqrt(l) instead of its f32 rounding.
      ours.to(DType::f64), paper.to(DType::f64);
      for (const auto& [name, t] : paper.state_dict()) state.add(name, randn(t.shape(), {DType::f64}) * 0.4 + 0.1);
      paper.load_state_dict(state);
      for (const NamedParameter& p : ours.named_parameters()) {
        const bool gain = state.find(p.name) == nullptr;
        const double l = p.name.starts_with("blocks.") ? 1.0 + (p.name[7] - '0') : 1;
        copy_into(detach(p.tensor), gain ? full(p.tensor.shape(), 1 / std::sqrt(l), {DType::f64}) : state.at(p.name));
      }
      const Tensor ids = randint(0, kVocab, {3, kContext}), targets = randint(0, kVocab, {3, kContext});
      const Tensor expected = paper(ids), logits = ours(ids);
      // About 60 consecutive sums of at most 8 terms; norms of a few zero-mean numbers enlarge rounding by at most 100.
      const double bound = 60 * std::sqrt(8) * 100 * 0x1p-52;
      check_close(logits, expected, bound);
      backward(cross_entropy(expected, targets)), backward(cross_entropy(logits, targets));
      const TensorMap theirs = paper.state_dict();
      double learns = 0;
      for (const NamedParameter& p : ours.named_parameters()) {
        INFO(p.name);
        if (const Tensor* same = theirs.find(p.name))
          check_close(p.tensor.grad(), same->grad(), 2 * bound);
        else
          learns = std::max(learns, amax(abs(p.tensor.grad())).item());
      }
      CHECK(learns > 1e-3);
    }
}
