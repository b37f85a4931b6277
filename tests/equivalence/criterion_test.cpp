// The criterion against forged results: whatever is not a proof must not pass as one.
#include "equivalence/criterion.h"

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
  CHECK(proof.equivalent);
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

TEST_CASE("criterion: NaN is never the same, in a run or in its controls") {
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
      CHECK(proof.runs[0].observed == Verdict::different);
      CHECK_FALSE(proof.equivalent);
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
  CHECK(verdict(empty) == Verdict::different);
  empty.control = {};
  CHECK(verdict(empty) == Verdict::different);
  for (Series series : kAll) {
    RunResult run = form_run();
    (run.deviations.*series).pop_back();
    CHECK(verdict(run) == Verdict::different);
    run = form_run();
    (run.control.*series).clear();
    CHECK(verdict(run) == Verdict::different);
    run = form_run();
    (run.control.*series).push_back(1);
    CHECK(verdict(run) == Verdict::different);
  }
  ProofResult proof;
  conclude(proof);
  CHECK_FALSE(proof.equivalent);
}

TEST_CASE("criterion: what was compared with itself proves nothing") {
  const Deviations zeros{std::vector<double>(50), std::vector<double>(50), std::vector<double>(50)};
  RunResult run = form_run();
  run.deviations = zeros;
  CHECK_FALSE(accepted(run));
  run.form = "layer_norm";  // the reference once more: the same program, hence the same bits
  CHECK(accepted(run));
  run = form_run();
  run.control = zeros;
  CHECK(verdict(run) == Verdict::different);
  for (Series series : {&Deviations::gradient, &Deviations::weight}) {  // controls that moved in one of the two alone
    run = form_run();
    run.control.*series = run.deviations.*series = std::vector<double>(50);
    CHECK(verdict(run) == Verdict::different);
  }
  run = negative_run();
  run.deviations = {std::vector<double>(20), std::vector<double>(20), std::vector<double>(20)};
  CHECK(verdict(run) == Verdict::same);
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

TEST_CASE("criterion: a proof fails with any of its runs") {
  for (size_t i = 0; i < 5; ++i) {
    ProofResult proof = synthetic_proof(50);
    proof.runs[i].expected = proof.runs[i].expected == Verdict::same ? Verdict::different : Verdict::same;
    conclude(proof);
    CHECK_FALSE(proof.equivalent);
  }
  ProofResult proof = synthetic_proof(50);
  proof.interrupted = true;
  conclude(proof);
  CHECK_FALSE(proof.equivalent);
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
