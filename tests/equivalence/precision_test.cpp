// Mixed precision: files are treated as the same function in f64. Comparisons of rounding in one dtype refuse it.
#include "equivalence/compare/audit.h"
#include "equivalence/compare/compare.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/verify/verify.h"
#include "tests/equivalence/model_files.h"
#include "tests/equivalence/small_net.h"

namespace {
constexpr nn::MixedPrecision kMixed{nn::Precision::bf16, nn::Precision::bf16};
}

TEST_CASE("a file of mixed precision is converted and verified as the function that it is in f64") {
  manual_seed(3);
  nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt({.precision = kMixed}));
  const ModelFile mixed = filled_file(gpt);
  CHECK(verify_models(mixed, with_option(with_option(mixed, "precision", "full"), "stream_precision", "full"))
            .equivalent());
  CHECK(converted(mixed, streams::Form::crms_norm).description.at("model.precision") == "bf16");
  CHECK_FALSE(verify_models(mixed, filled_file(gpt)).equivalent());  // other weights
}

TEST_CASE("proofs and comparisons refuse mixed precision, an audit says each precision itself") {
  const auto refusal = Contains("the precision is bf16, expected full");
  TrainingOptions o;
  o.dtype = DType::f32, o.model.transformer().precision = kMixed;
  CHECK_THROWS_WITH(prove({.training = o}), Contains("prove: ") && refusal);
  nn::Gpt a = streams::make<nn::Gpt>(small_gpt({.precision = kMixed})), b(small_gpt());
  const auto batch = [](int64_t) -> Examples { throw std::runtime_error("no batch is to be asked for"); };
  CHECK_THROWS_WITH(compare_gradients(a, b, {}, cross_entropy_of, batch), Contains("compare: ") && refusal);
  CHECK_THROWS_WITH(compare_gradients(b, a, {}, cross_entropy_of, batch), refusal);

  TrainingOptions small;
  small.model = {kGpt, {.width = 8, .depth = 1, .heads = 2}, {{"vocab", 5}, {"context", 4}}};
  small.batch = 4;
  const AuditResult plain = audit(small);
  small.model.transformer().precision = kMixed;
  CHECK(audit(small).bf16_error == plain.bf16_error);
}
