// The criterion against forged results: whatever is not a proof must not pass as one.
#include "equivalence/lockstep/criterion.h"

#include <limits>

#include "tests/equivalence/synthetic.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Series = std::vector<double> Deviations::*;
const Series kAll[] = {&Deviations::loss, &Deviations::gradient, &Deviations::weight};

RunResult form_run() { return synthetic_proof(50).runs[0]; }
RunResult negative_run() { return synthetic_proof(50).runs[3]; }

Verdict verdict(RunResult run) {
  judge(run, DType::f64);
  return run.observed;
}
bool accepted(RunResult run) {
  judge(run, DType::f64);
  CHECK(!run.reason.empty());
  return run.as_expected;
}

}  // namespace

TEST_CASE("criterion: the synthetic proof holds") {
  const ProofResult proof = synthetic_proof();
  CHECK(proof.equivalent());
  for (int i = 0; i < 3; ++i) CHECK(proof.runs[i].observed == Verdict::same);
  for (int i = 3; i < 5; ++i) CHECK(proof.runs[i].observed == Verdict::different);
  CHECK(proof.runs[3].control.loss.size() == kNegativeSteps);
  CHECK(proof.control_weight == proof.control.weight.back());
}

TEST_CASE("criterion: the bound is 30 D_c + 64 eps at every step, for every quantity") {
  for (Series series : kAll)
    for (size_t t : {size_t{0}, size_t{17}, size_t{49}}) {
      RunResult run = form_run();
      const double limit = 30 * (run.control.*series)[t] + 64 * 0x1p-52;
      (run.deviations.*series)[t] = limit;
      CHECK(verdict(run) == Verdict::same);
      (run.deviations.*series)[t] = limit * (1 + 1e-9);
      CHECK(verdict(run) == Verdict::different);
      CHECK_FALSE(accepted(run));
    }
  CHECK(bound(0, DType::f32) == 64 * 0x1p-23);
}

TEST_CASE("criterion: one entry off by 1e-9 is found and named") {
  RunResult run = form_run();
  run.deviations.weight[3] += 1e-9;
  judge(run, DType::f64);
  CHECK(run.observed == Verdict::different);
  CHECK(run.reason.find("weights at step 4: 1.0e-09") == 0);
}

TEST_CASE("criterion: NaN is never the same in a run, and ends the horizon in its controls") {
  for (Series series : kAll)
    for (size_t t : {size_t{0}, size_t{20}, size_t{49}}) {
      RunResult run = form_run();
      (run.deviations.*series)[t] = kNan;
      CHECK(verdict(run) == Verdict::different);
      CHECK(verdict(form_run()) == Verdict::same);

      ProofResult proof = synthetic_proof(50);
      (proof.controls[2].deviations.*series)[t] = kNan;
      for (RunResult& r : proof.runs) r.control = {};
      conclude(proof);
      CHECK(proof.horizon.steps == static_cast<int>(t));  // before that, everything is as it was
      CHECK(proof.runs[0].observed == (t < 20 ? Verdict::undecided : Verdict::same));
    }
  RunResult run = form_run();
  run.deviations.loss[7] = kNan;
  judge(run, DType::f64);
  CHECK(std::isnan(run.loss_deviation));
}

TEST_CASE("criterion: an infinite control does not excuse everything") {
  RunResult run = form_run();
  for (Series series : kAll)
    for (double& c : run.control.*series) c = std::numeric_limits<double>::infinity();
  CHECK_FALSE(accepted(run));
}

TEST_CASE("criterion: empty and incomplete runs are never the same") {
  RunResult empty = form_run();
  empty.deviations = {};
  CHECK(verdict(empty) == Verdict::undecided);
  empty.control = {};
  CHECK(verdict(empty) == Verdict::undecided);
  for (Series series : kAll) {
    RunResult run = form_run();
    (run.deviations.*series).pop_back();
    CHECK(verdict(run) == Verdict::undecided);
    run = form_run();
    (run.control.*series).clear();
    CHECK(verdict(run) == Verdict::undecided);
    run = form_run();
    (run.control.*series).push_back(1);
    CHECK(verdict(run) == Verdict::undecided);
  }
  ProofResult proof;
  conclude(proof);
  CHECK_FALSE(proof.equivalent());
}

TEST_CASE("criterion: what was compared with itself proves nothing") {
  const Deviations zeros{std::vector<double>(50), std::vector<double>(50), std::vector<double>(50)};
  RunResult run = form_run();
  run.deviations = zeros;
  CHECK_FALSE(accepted(run));
  run.may_be_identical = true;
  CHECK(accepted(run));
  run = form_run();
  run.control = zeros;
  CHECK(verdict(run) == Verdict::undecided);
  for (Series series : {&Deviations::gradient, &Deviations::weight}) {  // controls that moved in one of the two alone
    run = form_run();
    run.control.*series = run.deviations.*series = std::vector<double>(50);
    CHECK(verdict(run) == Verdict::undecided);
  }
  run = negative_run();
  run.deviations = {std::vector<double>(20), std::vector<double>(20), std::vector<double>(20)};
  run.reach = {};
  CHECK(verdict(run) == Verdict::undecided);
  CHECK_FALSE(accepted(run));
}

TEST_CASE("criterion: a loss that happens to pass the reference's at the last step has been far away before") {
  RunResult run = negative_run();
  run.deviations.loss.back() = 0;
  CHECK(accepted(run));
}

TEST_CASE("criterion: a negative control must start equal and end far away, in every quantity") {
  CHECK(accepted(negative_run()));
  for (Series series : kAll) {
    RunResult run = negative_run();
    const double least = std::max(1e6 * (run.control.*series).back(), 1e-5);
    if (series == &Deviations::loss) std::fill(run.deviations.loss.begin() + 1, run.deviations.loss.end(), 0.0);
    (run.deviations.*series).back() = least;
    CHECK_FALSE(accepted(run));
    (run.deviations.*series).back() = least * 1.01;
    CHECK(accepted(run));
    (run.control.*series).back() = 1e-9;  // now 1e6 D_c is what decides
    CHECK_FALSE(accepted(run));
    (run.deviations.*series).back() = kNan;
    CHECK_FALSE(accepted(run));
  }
  RunResult run = negative_run();
  run.deviations.loss[0] = 2e-12;
  CHECK_FALSE(accepted(run));
}

TEST_CASE("criterion: a run that left names the entry where it did") {
  RunResult run = form_run();
  run.deviations.weight[3] = 1e-3;
  run.first_difference = {4, "weights", {"fc.weight", {3, 4}, 0.5, 0.25, 1e-3}};
  judge(run, DType::f64);
  CHECK(run.reason.find("; fc.weight[3, 4] is 0.5, in the reference 0.25") != std::string::npos);
  run.first_difference->step = 5;
  judge(run, DType::f64);
  CHECK(run.reason.find("fc.weight") == std::string::npos);
}

TEST_CASE("criterion: a bound has power below a third of what a wrong training reaches, in f64 below 1e-5") {
  for (size_t q = 0; q < 3; ++q) {
    INFO("quantity " << q);
    RunResult run = form_run();
    double& reached = q == 0 ? run.reach.loss : q == 1 ? run.reach.gradient : run.reach.weight;
    std::vector<double>& control = run.control.*kAll[q];
    for (size_t t = 0; t < 50; ++t) control[t] = 1e-15 * static_cast<double>(t + 1);
    const auto judged = [&](double reach, DType dtype) {
      reached = reach;
      judge(run, dtype);
      return run.observed;
    };
    const auto limited_at = [&](size_t steps) {
      return 2.999 * (30 * control[steps] + 64 * 0x1p-52);
    };  // ends before it
    CHECK(judged(limited_at(20), DType::f64) == Verdict::same);
    CHECK(run.horizon.steps == 20);
    CHECK(run.horizon.ended_by == (q == 0 ? "the loss" : q == 1 ? "gradients" : "weights"));
    CHECK(run.horizon.term == "30 times the controls");
    CHECK(run.reason.find("up to step 20 of 50") != std::string::npos);
    CHECK(judged(limited_at(19), DType::f64) == Verdict::undecided);
    CHECK(run.horizon.steps == 19);
    CHECK_FALSE(run.as_expected);
    CHECK(run.reason.find("from step 20 on rounding alone moves " + run.horizon.ended_by) == 0);
    CHECK(judged(limited_at(0), DType::f64) == Verdict::undecided);
    CHECK(run.horizon.steps == 0);
    CHECK(judged(0, DType::f64) == Verdict::undecided);
    CHECK(run.reason.find("from step 1 on a wrong training was not seen to move") == 0);
    CHECK(judged(kNan, DType::f64) == Verdict::undecided);
    CHECK(judged(64 * 0x1p-23, DType::f32) == Verdict::undecided);  // the floor alone is above a third of that
    CHECK(run.horizon.term == "64 eps");
    CHECK(judged(1, DType::f64) == Verdict::same);
    for (size_t t = 30; t < 50; ++t) control[t] = 4e-7;  // 30 times that is above 1e-5
    CHECK(judged(1, DType::f64) == Verdict::same);
    CHECK(run.horizon.steps == 30);
    CHECK(judged(1, DType::f32) == Verdict::same);
    CHECK(run.horizon.steps == 50);
    (run.deviations.*kAll[q])[40] = 2e-5;  // beyond the horizon, and beyond the bound
    CHECK(judged(1, DType::f64) == Verdict::different);
  }
}

TEST_CASE("criterion: chaos is not equivalence") {
  RunResult run = form_run();
  for (Series series : kAll)
    for (size_t t = 0; t < 50; ++t) (run.control.*series)[t] = t < 10 ? 1e-7 : 14, (run.deviations.*series)[t] = 0.9;
  judge(run, DType::f32);
  CHECK(run.observed == Verdict::different);  // at step 1 already
  for (Series series : kAll)
    for (size_t t = 0; t < 10; ++t) (run.deviations.*series)[t] = 1e-7;
  judge(run, DType::f32);
  CHECK(run.observed == Verdict::undecided);
  CHECK_FALSE(run.as_expected);
}

TEST_CASE("criterion: in chaos a broken bound shows as little as one that is kept") {
  for (DType dtype : {DType::f64, DType::f32}) {
    RunResult run = form_run();
    run.reach = {0.5, 3, 0.5};
    for (Series series : kAll)
      for (size_t t = 30; t < 50; ++t) (run.control.*series)[t] = 10, (run.deviations.*series)[t] = 1e6;
    judge(run, dtype);
    CHECK(run.observed == Verdict::same);
    CHECK(run.horizon.steps == 30);
    for (Series series : kAll) {  // a bound below what a wrong training reaches decides, also beyond the horizon
      RunResult broken = run;
      (broken.control.*series)[40] = 0.49 / 30;
      judge(broken, dtype);
      CHECK(broken.observed == Verdict::different);
      broken = run;
      (broken.deviations.*series)[40] = kNan;
      judge(broken, dtype);
      CHECK(broken.observed == Verdict::different);
    }
    run.control.gradient[40] = 2.0 / 30;  // below what it reaches, but above 1
    judge(run, dtype);
    CHECK(run.observed == Verdict::same);
    run.reach = {};  // nothing is known of wrong trainings: a bound below the largest that decides is broken or not
    judge(run, dtype);
    CHECK(run.observed == Verdict::undecided);
    run.deviations.loss[3] = 1;
    judge(run, dtype);
    CHECK(run.observed == Verdict::different);
  }
}

TEST_CASE("criterion: f32, too, has a bound above which nothing is decided") {
  RunResult run = form_run();
  run.reach = {2, 2, 2};
  for (size_t t = 25; t < 50; ++t) run.control.weight[t] = 1e-3;  // a bound of 3 %
  judge(run, DType::f32);
  CHECK(run.observed == Verdict::same);
  CHECK(run.horizon.steps == 25);
  CHECK(run.horizon.limit.weight == 1e-2);
}

TEST_CASE("criterion: a run shorter than 20 steps needs all of them") {
  for (size_t steps : {size_t{1}, size_t{19}}) {
    RunResult run = form_run();
    for (Series series : kAll) (run.deviations.*series).resize(steps), (run.control.*series).resize(steps);
    CHECK(verdict(run) == Verdict::same);
    run.control.loss.back() = 1;
    CHECK(verdict(run) == Verdict::undecided);
  }
}

TEST_CASE("criterion: the reach is that of the weaker wrong training within its first 20 steps") {
  std::vector<RunResult> wrong(2);
  wrong[0].deviations = {std::vector<double>(30, 0.1), std::vector<double>(30, 2), std::vector<double>(30, 0.5)};
  wrong[1].deviations = {std::vector<double>(30, 0.3), std::vector<double>(30, 1), std::vector<double>(30, 0.7)};
  wrong[0].deviations.loss[19] = 0.2;
  wrong[0].deviations.loss[20] = 9;
  const Magnitudes r = reach(wrong);
  CHECK(r.loss == 0.2);
  CHECK(r.gradient == 1);
  CHECK(r.weight == 0.5);
  wrong[1].deviations.weight[3] = kNan;  // what is not a number shows nothing
  wrong[1].deviations.weight[2] = 0.3;
  for (size_t t : {0u, 1u}) wrong[1].deviations.weight[t] = 0;
  CHECK(reach(wrong).weight == 0.3);
  CHECK(reach({}).weight == 0);
}

TEST_CASE("criterion: what counts against a proof makes it different, what only lacks makes it undecided") {
  ProofResult proof = synthetic_proof(50);
  CHECK(proof.verdict == Verdict::same);
  CHECK(proof.horizon.steps == 50);
  CHECK(proof.horizon.resolution.weight == bound(proof.control_weight, DType::f64));
  for (RunResult& r : proof.runs)
    if (r.expected == Verdict::different) r.deviations.loss.assign(20, 2e-14);  // the floor alone is 1.4e-14
  conclude(proof);
  CHECK(proof.verdict == Verdict::undecided);
  CHECK(proof.runs[0].observed == Verdict::undecided);
  proof.runs[1].deviations.weight[30] = 1e-3;
  conclude(proof);
  CHECK(proof.verdict == Verdict::different);
  CHECK(ProofResult{}.verdict == Verdict::undecided);
}

TEST_CASE("criterion: a proof fails with any of its runs") {
  for (size_t i = 0; i < 5; ++i) {
    ProofResult proof = synthetic_proof(50);
    proof.runs[i].expected = proof.runs[i].expected == Verdict::same ? Verdict::different : Verdict::same;
    conclude(proof);
    CHECK_FALSE(proof.equivalent());
  }
  ProofResult proof = synthetic_proof(50);
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
  CHECK(std::isnan(d.weight[2]));
  CHECK(std::isnan(d.weight[3]));
  controls[1].deviations.gradient.pop_back();
  CHECK(running_maximum(controls).loss.empty());
  CHECK(running_maximum({}).loss.empty());
}
