// The criterion applied to forged results: anything that is not a proof must not pass as one.
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/prove.h"

#include <limits>

#include "tests/equivalence/room.h"
#include "tests/equivalence/synthetic.h"

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Series = std::vector<double> Deviations::*;
const Series kAll[] = {&Deviations::loss, &Deviations::gradient, &Deviations::weight};

RunResult form_run() { return synthetic_proof(50).runs[0]; }
RunResult negative_run() { return synthetic_proof(50).runs[3]; }

Verdict verdict(RunResult& run, DType dtype = DType::f64) {
  judge(run, dtype);
  CHECK(!run.reason.empty());
  return run.verdict;
}
bool accepted(RunResult run) {
  verdict(run);
  return run.as_expected;
}
Verdict concluded(ProofResult& proof) {
  conclude(proof);
  return proof.verdict;
}

Deviations constant(size_t steps, double loss, double gradient, double weight) {
  return {std::vector(steps, loss), std::vector(steps, gradient), std::vector(steps, weight)};
}
// Fills the steps [from, to).
void fill(Deviations& d, size_t from, size_t to, double value) {
  for (Series series : kAll) std::fill((d.*series).begin() + from, (d.*series).begin() + to, value);
}

}  // namespace

TEST_CASE("criterion: the synthetic proof holds") {
  const ProofResult proof = synthetic_proof();
  CHECK(proof.equivalent());
  for (int i = 0; i < 5; ++i) CHECK(proof.runs[i].verdict == (i < 3 ? Verdict::equivalent : Verdict::different));
  CHECK(proof.runs[3].control.loss.size() == kNegativeSteps);
  CHECK(proof.largest_control.weight == proof.control.weight.back());
}

TEST_CASE("criterion: the bound is 30 D_c + 64 eps at every step, for every quantity") {
  for (Series series : kAll)
    for (size_t t : {size_t{0}, size_t{17}, size_t{49}}) {
      RunResult run = form_run();
      double& d = (run.deviations.*series)[t];
      const double limit = 30 * (run.control.*series)[t] + 64 * 0x1p-52;
      d = limit;
      CHECK(verdict(run) == Verdict::equivalent);
      d = limit * (1 + 1e-9);
      CHECK(verdict(run) == Verdict::different);
      CHECK_FALSE(run.as_expected);
    }
  CHECK(bound(0, DType::f32) == 64 * 0x1p-23);
}

TEST_CASE("criterion: one entry that is off by 1e-9 is found, and named if its name is known") {
  RunResult run = form_run();
  run.deviations.weight[3] += 1e-9;
  run.first_difference = {4, "weights", {"fc.weight", {3, 4}, 0.5, 0.25, 1e-3}};
  CHECK(verdict(run) == Verdict::different);
  CHECK_THAT(run.reason,
             StartsWith("weights at step 4: 1.0e-09") && Contains("; fc.weight[3, 4] is 0.5, in the reference 0.25"));
  run.first_difference->step = 5;
  CHECK(verdict(run) == Verdict::different);
  CHECK_THAT(run.reason, !Contains("fc.weight"));
}

TEST_CASE("criterion: NaN is never the same in a run, and ends the horizon in its controls") {
  for (Series series : kAll)
    for (size_t t : {size_t{0}, size_t{20}, size_t{49}}) {
      RunResult run = form_run();
      (run.deviations.*series)[t] = kNan;
      CHECK(verdict(run) == Verdict::different);
      if (series == &Deviations::loss) CHECK(std::isnan(run.largest.loss));

      ProofResult proof = synthetic_proof(50);
      (proof.controls[2].deviations.*series)[t] = kNan;
      for (RunResult& r : proof.runs) r.control = {};
      conclude(proof);
      CHECK(proof.horizon.steps == static_cast<int>(t));  // earlier steps are unchanged
      CHECK(proof.runs[0].verdict == (t < 20 ? Verdict::undecided : Verdict::equivalent));
    }
}

TEST_CASE("criterion: empty and incomplete runs are never the same") {
  RunResult empty = form_run();
  empty.deviations = {};
  CHECK(verdict(empty) == Verdict::undecided);
  empty.control = {};
  CHECK(verdict(empty) == Verdict::undecided);
  for (Series series : kAll) {
    RunResult shorter = form_run(), none = form_run(), longer = form_run();
    (shorter.deviations.*series).pop_back(), (none.control.*series).clear(), (longer.control.*series).push_back(1);
    for (RunResult* run : {&shorter, &none, &longer}) CHECK(verdict(*run) == Verdict::undecided);
  }
  ProofResult proof;
  CHECK(proof.verdict == Verdict::undecided);
  conclude(proof);
  CHECK_FALSE(proof.equivalent());
}

TEST_CASE("criterion: a comparison of a model with itself proves nothing") {
  RunResult run = form_run(), unmoved = run, negative = negative_run();
  run.deviations = constant(50, 0, 0, 0);
  CHECK_FALSE(accepted(run));
  run.may_be_identical = true;
  CHECK(accepted(run));
  unmoved.control = constant(50, 0, 0, 0);
  CHECK(verdict(unmoved) == Verdict::undecided);
  for (Series series : {&Deviations::gradient, &Deviations::weight}) {  // controls that moved in only one of the two
    unmoved = form_run();
    unmoved.control.*series = unmoved.deviations.*series = std::vector<double>(50);
    CHECK(verdict(unmoved) == Verdict::undecided);
  }
  negative.deviations = constant(20, 0, 0, 0);
  negative.reach = {};
  CHECK(verdict(negative) == Verdict::undecided);
  CHECK_FALSE(negative.as_expected);
}

TEST_CASE("criterion: a negative control must start equal and end far away, in every quantity") {
  CHECK(accepted(negative_run()));
  for (Series series : kAll) {
    RunResult run = negative_run();
    const double least = std::max(1e6 * (run.control.*series).back(), 1e-5);
    if (series == &Deviations::loss) std::fill(run.deviations.loss.begin() + 1, run.deviations.loss.end(), 0.0);
    double& last = (run.deviations.*series).back();
    last = least;
    CHECK_FALSE(accepted(run));
    last = least * 1.01;
    CHECK(accepted(run));
    (run.control.*series).back() = 1e-9;  // now 1e6 D_c is the larger limit
    CHECK_FALSE(accepted(run));
    last = kNan;
    CHECK_FALSE(accepted(run));
  }
  RunResult run = negative_run();
  run.deviations.loss.back() = 0;  // equal to the reference at the last step, and far away before
  CHECK(accepted(run));
  run.deviations.loss[0] = 2e-12;
  CHECK_FALSE(accepted(run));
}

TEST_CASE("criterion: bounds stay below a third of a negative control's deviation, in f64 below 1e-5") {
  for (size_t q = 0; q < 3; ++q) {
    INFO("quantity " << q);
    RunResult run = form_run();
    double& reached = q == 0 ? run.reach.loss : q == 1 ? run.reach.gradient : run.reach.weight;
    std::vector<double>& control = run.control.*kAll[q];
    for (size_t t = 0; t < 50; ++t) control[t] = 1e-15 * static_cast<double>(t + 1);
    const auto judged = [&](double reach, DType dtype) {
      reached = reach;
      return verdict(run, dtype);
    };
    const auto limited_at = [&](size_t steps) { return 2.999 * (30 * control[steps] + 64 * 0x1p-52); };  // ends there
    CHECK(judged(limited_at(20), DType::f64) == Verdict::equivalent);
    CHECK(run.horizon.steps == 20);
    CHECK(run.horizon.ended_by == (q == 0 ? "the loss" : q == 1 ? "gradients" : "weights"));
    CHECK(run.horizon.term == "30 times the controls");
    CHECK_THAT(run.reason, Contains("up to step 20 of 50"));
    CHECK(judged(limited_at(19), DType::f64) == Verdict::undecided);
    CHECK(run.horizon.steps == 19);
    CHECK_FALSE(run.as_expected);
    CHECK_THAT(run.reason, StartsWith("from step 20 on rounding alone moves " + run.horizon.ended_by));
    CHECK(judged(limited_at(0), DType::f64) == Verdict::undecided);
    CHECK(run.horizon.steps == 0);
    CHECK(judged(0, DType::f64) == Verdict::undecided);
    CHECK_THAT(run.reason, StartsWith("from step 1 on no negative control moves"));
    CHECK(judged(kNan, DType::f64) == Verdict::undecided);
    CHECK(judged(64 * 0x1p-23, DType::f32) == Verdict::undecided);  // the floor alone is larger than a third of it
    CHECK(run.horizon.term == "64 eps");
    CHECK(judged(1, DType::f64) == Verdict::equivalent);
    for (size_t t = 30; t < 50; ++t) control[t] = 4e-7;  // 30 times this exceeds 1e-5
    CHECK(judged(1, DType::f64) == Verdict::equivalent);
    CHECK(run.horizon.steps == 30);
    CHECK(judged(1, DType::f32) == Verdict::equivalent);
    CHECK(run.horizon.steps == 50);
    (run.deviations.*kAll[q])[40] = 2e-5;  // beyond the horizon, and above the bound
    CHECK(judged(1, DType::f64) == Verdict::different);
  }
  RunResult coarse = form_run();
  coarse.reach = {2, 2, 2};
  for (size_t t = 25; t < 50; ++t) coarse.control.weight[t] = 1e-3;  // a bound of 3 %
  CHECK(verdict(coarse, DType::f32) == Verdict::equivalent);
  CHECK(coarse.horizon.steps == 25);
  CHECK(coarse.horizon.limit.weight == 1e-2);
}

TEST_CASE("criterion: chaos is not equivalence, nor are infinite controls") {
  RunResult run = form_run();
  fill(run.control, 0, 10, 1e-7), fill(run.control, 10, 50, 14), fill(run.deviations, 0, 50, 0.9);
  CHECK(verdict(run, DType::f32) == Verdict::different);  // already at step 1
  fill(run.deviations, 0, 10, 1e-7);
  CHECK(verdict(run, DType::f32) == Verdict::undecided);
  CHECK_FALSE(run.as_expected);
  run = form_run();
  fill(run.control, 0, 50, std::numeric_limits<double>::infinity());
  CHECK_FALSE(accepted(run));
}

TEST_CASE("criterion: in chaos a broken bound shows as little as one that is kept") {
  for (DType dtype : {DType::f64, DType::f32}) {
    RunResult run = form_run();
    run.reach = {0.5, 3, 0.5};
    fill(run.control, 30, 50, 10), fill(run.deviations, 30, 50, 1e6);
    CHECK(verdict(run, dtype) == Verdict::equivalent);
    CHECK(run.horizon.steps == 30);
    for (Series series : kAll) {  // a bound below the effect of negative controls decides, even beyond the horizon
      RunResult broken = run, nan = run;
      (broken.control.*series)[40] = 0.49 / 30, (nan.deviations.*series)[40] = kNan;
      for (RunResult* r : {&broken, &nan}) CHECK(verdict(*r, dtype) == Verdict::different);
    }
    run.control.gradient[40] = 2.0 / 30;  // smaller than the effect of a negative control, but above 1
    CHECK(verdict(run, dtype) == Verdict::equivalent);
    run.reach = {};  // no negative control is known: a run can be different, but not the same
    CHECK(verdict(run, dtype) == Verdict::undecided);
    run.deviations.loss[3] = 1;
    CHECK(verdict(run, dtype) == Verdict::different);
  }
}

TEST_CASE("criterion: a run shorter than 20 steps needs all of them") {
  for (size_t steps : {size_t{1}, size_t{19}}) {
    RunResult run = form_run();
    for (Series series : kAll) (run.deviations.*series).resize(steps), (run.control.*series).resize(steps);
    CHECK(verdict(run) == Verdict::equivalent);
    run.control.loss.back() = 1;
    CHECK(verdict(run) == Verdict::undecided);
  }
}

TEST_CASE("criterion: the weaker negative control sets the reach, within its first 20 steps") {
  std::vector<RunResult> wrong(2);
  wrong[0].deviations = constant(30, 0.1, 2, 0.5), wrong[1].deviations = constant(30, 0.3, 1, 0.7);
  wrong[0].deviations.loss[19] = 0.2;
  wrong[0].deviations.loss[20] = 9;
  const Magnitudes r = reach(wrong);
  CHECK((r.loss == 0.2 && r.gradient == 1 && r.weight == 0.5));
  wrong[1].deviations.weight[3] = kNan;  // NaN shows nothing
  wrong[1].deviations.weight[2] = 0.3;
  for (size_t t : {0u, 1u}) wrong[1].deviations.weight[t] = 0;
  CHECK(reach(wrong).weight == 0.3);
  CHECK(reach({}).weight == 0);
}

TEST_CASE("criterion: what counts against a proof makes it different, what only lacks makes it undecided") {
  ProofResult proof = synthetic_proof(50);
  CHECK(proof.verdict == Verdict::equivalent);
  CHECK(proof.horizon.steps == 50);
  CHECK(proof.horizon.detectable.weight == bound(proof.largest_control.weight, DType::f64));
  for (RunResult& r : proof.runs)
    if (r.expected == Verdict::different) r.deviations.loss.assign(20, 2e-14);  // the floor alone is 1.4e-14
  CHECK(concluded(proof) == Verdict::undecided);
  CHECK(proof.runs[0].verdict == Verdict::undecided);
  proof.runs[1].deviations.weight[30] = 1e-3;
  CHECK(concluded(proof) == Verdict::different);
  for (size_t i = 0; i < 5; ++i) {  // for each of its runs
    proof = synthetic_proof(50);
    proof.runs[i].expected = proof.runs[i].expected == Verdict::equivalent ? Verdict::different : Verdict::equivalent;
    conclude(proof);
    CHECK_FALSE(proof.equivalent());
  }
  proof = synthetic_proof(50);
  proof.interrupted = true;
  conclude(proof);
  CHECK_FALSE(proof.equivalent());
}

TEST_CASE("criterion: D_c(t) is the largest of any control up to t") {
  std::vector<RunResult> controls(2);
  controls[0].deviations = {{1, 5, 2, 2}, {0, 0, 0, 1}, {4, 3, 2, 1}};
  controls[1].deviations = {{2, 1, 1, 7}, {1, 0, 0, 0}, {1, 1, kNan, 1}};
  const Deviations d = running_maximum(controls);
  CHECK(d.loss == std::vector<double>{2, 5, 5, 7});
  CHECK(d.gradient == std::vector<double>{1, 1, 1, 1});
  CHECK(d.weight[1] == 4);
  CHECK((std::isnan(d.weight[2]) && std::isnan(d.weight[3])));
  controls[1].deviations.gradient.pop_back();
  CHECK(running_maximum(controls).loss.empty());
  CHECK(running_maximum({}).loss.empty());
}
