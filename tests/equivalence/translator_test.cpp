// The encoder-decoder's files, and the directions that an audit finds. tests/model_cases proves and converts it.
#include "equivalence/compare/audit.h"
#include "equivalence/verify/verify.h"
#include "nn/encoder_decoder.h"
#include "tests/equivalence/model_files.h"

namespace {

TrainingOptions small() {
  const ModelOptions model{
      kTranslator, {.width = 8, .depth = 4, .heads = 2, .mlp_width = 12}, {{"vocab", 5}, {"context", 6}}};
  return {.model = model, .data = {}, .letters = 5, .lr = 3e-3, .warmup = 2, .steps = 12, .batch = 4};
}

nn::EncoderDecoderOptions small_model(bool tied) {
  return {.vocab = 9,
          .context = 6,
          .decoder_depth = 3,
          .shared = tied,
          .tied = tied,
          .transformer = {.width = 8, .depth = 2, .heads = 2, .mlp_width = 12, .affine = true}};
}

}  // namespace

TEST_CASE("translator: a decoder as deep as the encoder is one whose depth is left out") {
  nn::EncoderDecoderOptions o = small_model(false);
  o.decoder_depth = 2;
  manual_seed(3);
  nn::EncoderDecoder model(o);
  const ModelFile file = test::filled_file(model);
  CHECK(verify_models(file, test::with_option(file, "decoder_depth", "0")).equivalent());
}

TEST_CASE("translator: files say what it is, and weights go from form to form") {
  for (const bool tied : {false, true}) {
    manual_seed(3);
    nn::EncoderDecoder model(small_model(tied));
    const ModelFile file = test::filled_file(model);
    CHECK(file.description.at("model.kind") == "translator");
    CHECK(file.description.at("model.decoder_depth") == "3");
    for (const streams::Form to : streams::centred_forms()) {
      INFO(name_of(to));
      CHECK(verify_models(file, test::converted_exactly(file, to)).equivalent());
    }
    CHECK_FALSE(verify_models(file, test::with_option(file, "pad", "1")).equivalent());
  }
}

TEST_CASE("translator: an audit finds what its weights hide, in both streams") {
  const AuditResult r = audit(small());
  CHECK(r.verdict == Verdict::equivalent);
  // With width 8: a writer's slice and a reader's slice each have one undetermined direction of 8. Key biases are
  // undetermined entirely.
  const auto hidden = [&](const std::string& name) {
    const auto row = std::ranges::find(r.rows, name, &AuditResult::Row::name);
    return row == r.rows.end() ? -1 : row->directions;
  };
  CHECK(hidden("source.weight") == 5);               // one for each id
  CHECK(hidden("encoder.0.attn.proj.weight") == 8);  // one for each column
  CHECK(hidden("decoder.3.cross.q.weight") == 8);    // one for each row
  CHECK(hidden("decoder.3.cross.kv.weight") == 16);
  CHECK(hidden("decoder.3.cross.kv.bias") == 8);
}
