// Another arrangement of residual connections than pre_norm: its description is read back, and what is shown of
// pre_norm alone refuses it.
#include "equivalence/compare/audit.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/verify/verify.h"
#include "nn/residual/all.h"
#include "tests/equivalence/model_files.h"
#include "tests/equivalence/small_net.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using isonorm::test::filled_file;
using isonorm::test::small_gpt;
using isonorm::test::small_vit;

TEST_CASE("a description names the arrangement, and is of pre_norm where it is silent") {
  const nn::Vit vit(small_vit({.residual = nn::kPostNorm}));
  Metadata description = describe(vit);
  CHECK(description.at("model.residual") == "post_norm");
  CHECK(ModelOptions(description).transformer().residual == nn::kPostNorm);
  CHECK(describe(*ModelOptions(description).build()) == description);
  description.erase("model.residual");
  CHECK(ModelOptions(description).transformer().residual == nn::kPreNorm);
  description["model.residual"] = "post";
  CHECK_THROWS_WITH(ModelOptions(description), "model file: entry 'model.residual' is 'post', which it cannot be");
}

TEST_CASE("proof, audit, conversion and verification are of pre_norm alone") {
  manual_seed(3);
  nn::Gpt post(small_gpt({.residual = nn::kPostNorm})), pre(small_gpt());
  const ModelFile file = filled_file(post), other = filled_file(pre);
  const auto refusal = Contains("residual connections are post_norm, expected pre_norm");
  for (const nn::StreamForm to : {nn::StreamForm::rms_norm, nn::StreamForm::crms_norm})
    CHECK_THROWS_WITH(convert_model(file, to), refusal);
  CHECK_THROWS_WITH(verify_models(file, other), refusal);
  CHECK_THROWS_WITH(verify_models(other, file), refusal);
  const Layout layout = layout_of(pre);
  CHECK_NOTHROW(check_described(other.description, layout));
  CHECK_THROWS_WITH(check_described(file.description, layout), refusal);
  TrainingOptions o;
  o.residual = nn::kPostNorm;
  CHECK_THROWS_WITH(prove({.training = o}), refusal);
  CHECK_THROWS_WITH(audit(o), refusal);
}

TEST_CASE("a model of one's own with another connection has no layout, and its place is named") {
  CHECK_THROWS_WITH(layout_of(nn::Gpt(small_gpt({.residual = nn::kPostNorm}))),
                    "layout: 'blocks.0.norm1' is no connection of pre_norm, whose forms alone are known");
  CHECK_NOTHROW(layout_of(nn::Gpt(small_gpt())));
}
