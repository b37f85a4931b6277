// A judgement says its verdict, the first difference and the cause in one sentence; a run agrees with its expectation
// or not.
#include "equivalence/judge/judgement.h"

#include "equivalence/judge/run_result.h"
#include "tests/equivalence/room.h"

namespace {

Deviation deviation(const char* what, const std::string& tensor) {
  return {what, {tensor, {2}, 1.5, 1, 0.5}, 0.5, 1e-10};
}

Judgement judged(Verdict verdict) {
  Judgement j;
  j.verdict = verdict, j.reason = "why";
  j.first_difference = {3, "gradient", {"w", {2}, 1.5, 1, 0.5}};
  return j;
}

}  // namespace

TEST_CASE("judgement: the sentence of an equivalent pair lists the tensors that were not compared, and no difference") {
  Judgement j = judged(Verdict::equivalent);
  j.first_difference->deviations = {deviation("gradient", "w")};
  CHECK(j.sentence() == "equivalent: why");
  j.not_compared = {"a", "b"};
  CHECK(j.sentence() == "equivalent: why; not compared: a, b");
  j.verdict = Verdict::undecided;
  CHECK(j.sentence() == "undecided: why");
}

TEST_CASE("judgement: each different tensor has a line, but not weights that follow from wrong gradients") {
  Judgement j = judged(Verdict::different);
  auto& all = j.first_difference->deviations;
  all = {deviation("loss", ""), deviation("gradient", "w"), deviation("weight", "w")};
  CHECK(j.sentence() ==
        "different: why\n"
        "  loss: 5.0e-01, the bound is 1.0e-10; it is 1.5, in the reference 1\n"
        "  gradient of w: 5.0e-01, the bound is 1.0e-10; w[2] is 1.5, in the reference 1");
  all = {deviation("weight", "v"), deviation("weight", "w")};
  CHECK_THAT(j.sentence(), Contains("weight of v: ") && Contains("weight of w: "));
  all.assign(10, deviation("gradient", "w"));
  CHECK_THAT(j.sentence(), Catch::Matchers::EndsWith("\n  and 2 more"));
}

TEST_CASE("judgement: a tested cause and a likely one are told apart") {
  Judgement j = judged(Verdict::different);
  j.tried = {"eps", "a factor", "dropout"};
  CHECK(j.sentence() == "different: why\n  no cause was found; tested: eps, a factor and dropout");
  j.place = "the forwards agree up to fc", j.likely_cause = "another eps";
  CHECK(j.sentence() == "different: why\n  the forwards agree up to fc\n  likely cause: another eps");
  j.cause_tested = true;
  CHECK_THAT(j.sentence(), Catch::Matchers::EndsWith("\n  cause: another eps"));
}

TEST_CASE("judgement: a run agrees with its expectation by its margin, contradicts it, or shows too little") {
  const auto agreement = [](Verdict expected, Verdict observed, bool by_the_margin) {
    RunResult r;
    r.expected = expected, r.verdict = observed, r.as_expected = by_the_margin;
    return r.agreement();
  };
  for (const auto& [one, other] :
       {std::pair{Verdict::equivalent, Verdict::different}, {Verdict::different, Verdict::equivalent}}) {
    CHECK(agreement(one, one, true) == Verdict::equivalent);
    CHECK(agreement(one, one, false) == Verdict::undecided);
    CHECK(agreement(one, other, false) == Verdict::different);
    CHECK(agreement(one, Verdict::undecided, false) == Verdict::undecided);
  }
}
