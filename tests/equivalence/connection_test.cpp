// Arrangements of connections: gains that stay in their norms are compared, and the grid is as theory says.
// tests/model_cases converts, proves and audits every arrangement.
#include "equivalence/grid/grid.h"
#include "equivalence/text/grid_text.h"
#include "equivalence/verify/verify.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/markup.h"

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

TEST_CASE("gains that begin scaled are folded into their readers, and their initial value is no part of the function") {
  manual_seed(3);
  const ModelFile file = file_of(small_gpt({.affine = true, .scaled_gains = true}));
  CHECK(file.description.at("model.scaled_gains") == "true");
  const ModelFile there = converted_exactly(file, streams::Form::crms_norm);
  CHECK(there.description.at("model.scaled_gains") == "false");
  CHECK(verify_models(file, there).equivalent());
  CHECK(verify_models(file, with_option(file, "scaled_gains", "false")).equivalent());
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
