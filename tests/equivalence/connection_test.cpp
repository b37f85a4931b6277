// Arrangements of connections other than pre_ln: descriptions are read back, forms are compared with each other, and
// functions that support only pre_ln refuse them.
#include "equivalence/compare/audit.h"
#include "equivalence/grid/grid.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/text/grid_text.h"
#include "equivalence/verify/verify.h"
#include "tests/equivalence/model_files.h"
#include "tests/equivalence/small_net.h"
#include "tests/support/markup.h"

TEST_CASE("weights of every arrangement go from form to form, and are verified") {
  for (int i = 0; i < 4 * static_cast<int>(std::size(nn::kArrangements)); ++i) {
    const nn::Arrangement& a = nn::kArrangements[i / 4];
    const bool images = i % 2, affine = i / 2 % 2;
    INFO(a.name << (images ? ", images" : "") << (affine ? ", affine" : ""));
    manual_seed(3);
    nn::GptOptions g = small_gpt({.affine = affine, .connection = a});
    nn::VitOptions v = small_vit({.affine = affine, .connection = a});
    g.transformer.depth = v.transformer.depth = 4;
    const ModelFile file = images ? file_of(v) : file_of(g);
    for (const streams::Form to : streams::kCentredForms) {
      INFO(name_of(to));
      const ModelFile there = converted_exactly(file, to);
      CHECK(verify_models(file, there).equivalent());
      CHECK(verify_models(there, converted_exactly(there, streams::Form::layer_norm)).equivalent());
      // If the first branch reads the embeddings themselves, their mean is not free.
      const std::string table = images ? "patch.bias" : "token.weight";
      const ModelFile moved = with_tensor(file, table, file.state.at(table) + 0.5);
      CHECK(verify_models(moved, there).equivalent() == !a.bare_entry);
    }
  }
}

TEST_CASE("a gain that no reader takes up, and a table that is read bare and tied, go along and are compared") {
  for (const nn::Arrangement& a : {nn::kPostLn, nn::kResiDual, nn::kMixLn, nn::kSandwich, nn::kSubLn})
    for (const bool affine : {false, true}) {
      INFO(a.name << (affine ? ", affine" : ""));
      manual_seed(3);
      nn::GptOptions g = small_gpt({.affine = affine, .connection = a});
      g.tied = true, g.transformer.depth = 4;
      const ModelFile file = file_of(g), there = converted_exactly(file, streams::Form::crms_norm);
      CHECK(verify_models(file, file).equivalent());
      CHECK(verify_models(file, there).equivalent());
      // A head after rows with a gain reads the table itself.
      CHECK((there.state.find("head.weight") != nullptr) != (affine && (a == nn::kPostLn || a == nn::kResiDual)));
      int kept = 0;
      for (const auto& [name, value] : there.state) {
        if (!contains(name, "norm")) continue;
        INFO(name);
        CHECK_FALSE(verify_models(file, with_tensor(there, name, value + 0.01)).equivalent());
        ++kept;
      }
      CHECK((kept > 0) == affine);
    }
}

TEST_CASE("audits of other arrangements find what their weights hide") {
  for (const nn::Arrangement& a : nn::kArrangements) {
    INFO(a.name);
    const nn::TransformerOptions t{.width = 8, .depth = 4, .heads = 2, .mlp_width = 12, .connection = a};
    const TrainingOptions o{.model = {kGpt, t, {{"vocab", 13}, {"context", 6}}}, .data = {}, .batch = 4};
    if (a.bare_entry) {
      CHECK_THROWS_WITH(audit(o), Contains("the first branch reads the embeddings themselves"));
      continue;
    }
    const AuditResult r = audit(o);
    CHECK(r.as_expected);
    CHECK(r.directions() > 0);
  }
}

namespace {

// Random tokens, four blocks, so that Mix-LN's first quarter is one block.
ProofOptions small_proof(const nn::Arrangement& connection, bool affine, bool tied = false) {
  ProofOptions p;
  TrainingOptions& o = p.training;
  o.model = {kGpt,
             {.width = 8, .depth = 4, .heads = 2, .mlp_width = 12, .affine = affine, .connection = connection},
             {{"context", 6}, {"tied", tied}}};
  o.batch = 4, o.steps = 12, o.warmup = 2, o.lr = 3e-3;
  p.controls = 2;
  return p;
}

}  // namespace

TEST_CASE("every arrangement trains as one model in all forms, and its negative controls do not") {
  for (const nn::Arrangement& a : nn::kArrangements)
    for (const bool affine : {false, true})
      for (const bool tied : {false, true}) {
        INFO(a.name << (affine ? ", affine" : "") << (tied ? ", tied" : ""));
        const ProofResult r = prove(small_proof(a, affine, tied));
        CHECK(r.verdict == Verdict::equivalent);
        if (tied) continue;  // some arrangements have wrong trainings of their own if tied
        const auto is = [](const char* fault) {
          return [=](const RunResult& run) { return text(run.negative_control) == fault; };
        };
        CHECK(std::ranges::count_if(r.runs, is("embeddings centred")) == a.bare_entry);
        CHECK(r.runs.size() == (affine ? 4u : 5u) + a.bare_entry);
        check_runs(r);
      }
}

TEST_CASE("gains that begin scaled train as one model in every form, and are folded into their readers") {
  ProofOptions p = small_proof(nn::kPreLn, true);
  nn::TransformerOptions& t = p.training.model.transformer();
  t.depth = 3, t.norm_bias = false, t.scaled_gains = true;
  const ProofResult r = prove(p);
  CHECK(r.verdict == Verdict::equivalent);
  const auto form = [](const RunResult& run) {
    return text(run.negative_control).empty() && run.expected == Verdict::equivalent;
  };
  CHECK(std::ranges::count_if(r.runs, form) >= 3);
  check_runs(r);
  manual_seed(3);
  const ModelFile file = file_of(small_gpt({.affine = true, .scaled_gains = true}));
  CHECK(file.description.at("model.scaled_gains") == "true");
  for (const streams::Form to : streams::kCentredForms) {
    INFO(name_of(to));
    const ModelFile there = converted_exactly(file, to);
    CHECK(there.description.at("model.scaled_gains") == "false");
    CHECK(verify_models(file, there).equivalent());
  }
  CHECK(verify_models(file, with_option(file, "scaled_gains", "false"))
            .equivalent());  // the initial value of gains is not part of the function
}

TEST_CASE("the grid of every arrangement is as theory says") {
  for (const nn::Arrangement& a : nn::kArrangements) {
    TableOptions o;
    o.connection = a, o.depth = 4, o.steps = 8, o.seeds = 1, o.controls = 2;
    o.columns = {recipe("momentum"), recipe("adamw")};
    const TableResult r = table(o);
    INFO(a.name << ": " << closing(document_of({&r, 1})));
    CHECK(r.as_expected());
  }
}
