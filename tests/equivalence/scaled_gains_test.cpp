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
  o.model = &kGpt, o.affine = o.scaled_gains = true, o.norm_bias = false;
  o.width = 8, o.depth = 3, o.heads = 2, o.mlp = 12, o.context = 6, o.batch = 4, o.steps = 12, o.warmup = 2;
  o.lr = 3e-3;
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
  // Where gains begin is no part of the function; a file without the entry is one whose gains began at 1.
  ModelFile silent = file;
  silent.description.erase("model.scaled_gains");
  CHECK_FALSE(ModelOptions(silent.description).transformer().scaled_gains);
  CHECK(verify_models(file, silent).same());
}
