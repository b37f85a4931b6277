// Other arrangements of connections than pre_ln: their descriptions are read back, their forms are held against each
// other, and what is shown of pre_ln alone refuses them.
#include "equivalence/compare/audit.h"
#include "equivalence/grid/grid.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/text/grid_text.h"
#include "equivalence/verify/verify.h"
#include "nn/residual/all.h"
#include "streams/transformer.h"
#include "tests/equivalence/model_files.h"
#include "tests/equivalence/small_net.h"
#include "tests/support/markup.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using isonorm::test::contains;
using isonorm::test::filled_file;
using isonorm::test::small_gpt;
using isonorm::test::small_vit;

TEST_CASE("a description names the arrangement, and is of pre_ln where it is silent") {
  const nn::Vit vit = streams::make<nn::Vit>(small_vit({.connection = nn::kPostLn}));
  Metadata description = describe(vit);
  CHECK(description.at("model.connection") == "post_ln");
  CHECK(ModelOptions(description).transformer().connection == nn::kPostLn);
  CHECK(describe(*ModelOptions(description).build()) == description);
  description.erase("model.connection");
  CHECK(ModelOptions(description).transformer().connection == nn::kPreLn);
  description["model.connection"] = "post";
  CHECK_THROWS_WITH(ModelOptions(description), "model file: entry 'model.connection' is 'post', which it cannot be");
}

TEST_CASE("weights of every arrangement go from form to form, and are verified") {
  for (int i = 0; i < 4 * static_cast<int>(std::size(nn::kArrangements)); ++i) {
    const nn::Arrangement& a = nn::kArrangements[i / 4];
    const bool images = i % 2, affine = i / 2 % 2;
    INFO(a.name << (images ? ", images" : "") << (affine ? ", affine" : ""));
    manual_seed(3);
    nn::TransformerOptions t{.affine = affine, .connection = a};
    t.depth = 4;
    nn::GptOptions g = small_gpt(t);
    nn::VitOptions v = small_vit(t);
    g.transformer.depth = v.transformer.depth = 4;
    const std::unique_ptr<nn::Module> model =
        images ? std::unique_ptr<nn::Module>(std::make_unique<nn::Vit>(v)) : std::make_unique<nn::Gpt>(g);
    const ModelFile file = filled_file(*model);
    for (const streams::Form to : streams::kCentredForms) {
      INFO(name_of(to));
      const ModelConversion c = convert_model(file, to);
      const ModelFile there{c.conversion.exact, c.description};
      CHECK(verify_models(file, there).same());
      const ModelConversion back = convert_model(there, streams::Form::layer_norm);
      CHECK(verify_models(there, {back.conversion.exact, back.description}).same());
      // Where the bare embeddings are read, their mean is no more free than anything else.
      ModelFile moved{{}, file.description};
      const std::string table = images ? "patch.bias" : "token.weight";
      for (const auto& [name, value] : file.state) moved.state.add(name, name == table ? value + 0.5 : value);
      CHECK(verify_models(moved, there).same() == !a.bare_entry);
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
      nn::Gpt model(g);
      const ModelFile file = filled_file(model);
      CHECK(verify_models(file, file).same());
      const ModelConversion c = convert_model(file, streams::Form::crms_norm);
      const ModelFile there{c.conversion.exact, c.description};
      CHECK(verify_models(file, there).same());
      // A head behind rows with a gain reads with the table as it is.
      CHECK((there.state.find("head.weight") != nullptr) != (affine && (a == nn::kPostLn || a == nn::kResiDual)));
      int kept = 0;
      for (const auto& [name, value] : there.state) {
        if (!contains(name, "norm")) continue;
        ModelFile moved{{}, there.description};
        for (const auto& [n, v] : there.state) moved.state.add(n, n == name ? v + 0.01 : v);
        INFO(name);
        CHECK_FALSE(verify_models(file, moved).same());
        ++kept;
      }
      CHECK((kept > 0) == affine);
    }
}

TEST_CASE("audits of other arrangements find what their weights hide") {
  for (const nn::Arrangement& a : nn::kArrangements) {
    INFO(a.name);
    TrainingOptions o;
    o.model = &kGpt, o.connection = a, o.width = 8, o.depth = 4, o.heads = 2, o.mlp = 12, o.context = 6, o.batch = 4;
    if (a.bare_entry) {
      CHECK_THROWS_WITH(audit(o), Contains("the first branch reads the embeddings as they are"));
      continue;
    }
    const AuditResult r = audit(o);
    CHECK(r.as_expected);
    CHECK(r.directions() > 0);
  }
}

namespace {

// Made tokens, four blocks: Mix-LN's first quarter is one of them.
ProofOptions small_proof(const nn::Arrangement& connection, bool affine, bool tied = false) {
  ProofOptions p;
  TrainingOptions& o = p.training;
  o.model = &kGpt, o.connection = connection, o.affine = affine, o.tied = tied;
  o.width = 8, o.depth = 4, o.heads = 2, o.mlp = 12, o.context = 6, o.batch = 4, o.steps = 12, o.warmup = 2;
  o.lr = 3e-3;
  p.controls = 2;
  return p;
}

}  // namespace

TEST_CASE("every arrangement trains as one model in all forms, and its negative controls do not") {
  for (const nn::Arrangement& a : nn::kArrangements)
    for (const bool affine : {false, true}) {
      INFO(a.name << (affine ? ", affine" : ""));
      const ProofResult r = prove(small_proof(a, affine));
      CHECK(r.verdict == Verdict::same);
      const auto is = [](const char* fault) { return [=](const RunResult& run) { return text(run.fault) == fault; }; };
      CHECK(std::ranges::count_if(r.runs, is("embeddings centred")) == a.bare_entry);
      CHECK(r.runs.size() == (affine ? 4u : 5u) + a.bare_entry);
      for (const RunResult& run : r.runs) {
        INFO(run.variant->name);
        CHECK(run.observed == run.expected);
        CHECK(run.as_expected);
      }
    }
}

TEST_CASE("every arrangement is proved with a tied head, too") {
  for (const nn::Arrangement& a : nn::kArrangements)
    for (const bool affine : {false, true}) {
      INFO(a.name << (affine ? ", affine" : ""));
      CHECK(prove(small_proof(a, affine, true)).verdict == Verdict::same);
    }
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
