// LayerNorm Scaling as released, with gains that are learned: one model in all forms, whose weights are carried like those of
// any gain.
#include "equivalence/lockstep/prove.h"
#include "equivalence/verify/verify.h"
#include "streams/transformer.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;
using isonorm::test::filled_file;
using isonorm::test::small_gpt;

TEST_CASE("gains that begin scaled train as one model in every form, raw storage") {
  ProofOptions p;
  TrainingOptions& o = p.training;
  nn::TransformerOptions t{.width = 8, .depth = 3, .heads = 2, .mlp_width = 12, .affine = true};
  t.norm_bias = false, t.scaled_gains = true;
  o.model = {kGpt, t, {{"context", 6}}};
  o.batch = 4, o.steps = 12, o.warmup = 2, o.lr = 3e-3;
  p.controls = 2;
  const ProofResult r = prove(p);
  CHECK(r.verdict == Verdict::same);
  int forms = 0;
  for (const RunResult& run : r.runs) {
    INFO(run.variant->name);
    CHECK(run.as_expected);
    forms += text(run.fault).empty() && run.expected == Verdict::same;
  }
  CHECK(forms >= 3);
}

TEST_CASE("gains that began scaled are folded into their readers, and the result says nothing of them") {
  manual_seed(3);
  nn::Gpt model = streams::make<nn::Gpt>(small_gpt({.affine = true, .scaled_gains = true}));
  const ModelFile file = filled_file(model);
  CHECK(file.description.at("model.scaled_gains") == "true");
  for (const streams::Form to : streams::kCentredForms) {
    INFO(name_of(to));
    const ModelConversion c = convert_model(file, to);
    CHECK(c.description.at("model.scaled_gains") == "false");
    CHECK(verify_models(file, {c.conversion.exact, c.description}).same());
  }
  // Where gains begin is no part of the function.
  ModelFile ones = file;
  ones.description.insert_or_assign("model.scaled_gains", std::string("false"));
  CHECK(verify_models(file, ones).same());
}
