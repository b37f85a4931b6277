// The table's rows and the closing sentence of a proof.
#include "equivalence/text/summary.h"

#include "core/printed.h"
#include "tests/equivalence/synthetic.h"
#include "tests/support/catch.h"
#include "training/records/manifest.h"
#include "training/records/training_text.h"

using namespace isonorm::equivalence;
using namespace isonorm::training;
using Kind = SummaryRow::Kind;

TEST_CASE("summary: one row per run, reference and controls first") {
  const ProofResult proof = synthetic_proof();
  const std::vector<SummaryRow> rows = summary_rows(proof);
  REQUIRE(rows.size() == 10);
  CHECK(rows[0].kind == Kind::reference);
  CHECK(rows[0].loss.empty());
  CHECK(rows[0].accuracy == "81.23 %");
  CHECK(rows[1].name == "layer_norm + 1 ulp (seed 1)");
  CHECK(rows[1].observed.empty());
  CHECK(rows[5].kind == Kind::form);
  CHECK(rows[5].weight == isonorm::scientific(proof.runs[0].weight_deviation));
  CHECK(rows[5].control_weight == isonorm::scientific(proof.control_weight));
  CHECK(rows[8].kind == Kind::negative);
  CHECK(rows[8].name == "rms_norm projected_once");
  CHECK(rows[8].expected == "different");
  CHECK(rows[8].accuracy.empty());
  CHECK(rows[8].control_loss == isonorm::scientific(proof.runs[3].control.loss.back()));
}

TEST_CASE("summary: the sentence gives the figures, or the run that failed and why") {
  ProofResult proof = synthetic_proof();
  const std::string good = summary_sentence(proof);
  CHECK(good.find("Equivalent: after 200 steps on the same batches rms_norm, crms_norm and crms_isometric have") == 0);
  CHECK(good.find(isonorm::scientific(proof.control_weight)) != std::string::npos);
  CHECK(good.find(
            "the 2 negative controls came out different. Horizon: 200 of 200 steps; up to there a difference of " +
            isonorm::scientific(bound(proof.control_loss, isonorm::DType::f64)) + " in the loss") != std::string::npos);
  proof.runs[1].deviations.gradient[6] = 1e-3;
  conclude(proof);
  const std::string bad = summary_sentence(proof);
  CHECK(bad.find("Not equivalent: crms_norm was expected to come out same and came out different (gradient at step 7: "
                 "1.0e-03") == 0);
  CHECK(summary_sentence(ProofResult{}) == "Undecided: there was nothing to compare.");

  proof = synthetic_proof();
  proof.runs[3].deviations.gradient.back() = 1e-6;  // a negative control that ends too near
  conclude(proof);
  CHECK(summary_sentence(proof).find("Undecided: rms_norm projected_once came out different, as expected, but it "
                                     "does not count (gradient deviates by 1.0e-06") == 0);
}

TEST_CASE("summary: chaos ends what is said, or leaves it undecided") {
  ProofResult proof = synthetic_proof();
  proof.controls[0].deviations.weight[150] = 1e-4;
  proof.runs[0].deviations.weight[160] = 1e-4;  // within the bound, but beyond the horizon
  for (RunResult& run : proof.runs)
    if (run.expected == Verdict::same) run.control = {};
  conclude(proof);
  CHECK(summary_sentence(proof).find("Equivalent: same up to step 150 of 200; from step 151 on rounding alone moves "
                                     "weights by more than 1.0e-05 (30 times the controls). After 150 steps") == 0);
  CHECK(summary_sentence(proof).find("1.0e-04") == std::string::npos);
  proof.controls[0].deviations.gradient[12] = 1e-4;
  for (RunResult& run : proof.runs)
    if (run.expected == Verdict::same) run.control = {};
  conclude(proof);
  CHECK(summary_sentence(proof).find(
            "Undecided: rms_norm was expected to come out same and came out undecided (from step 13 on rounding alone "
            "moves gradients by more than 1.0e-05 (30 times the controls); a verdict needs 20 steps before that)") ==
        0);
}

TEST_CASE("summary: the command that repeats a proof names every option and survives a shell") {
  ProofResult proof = synthetic_proof();
  proof.options.training.data = "my data/it's";
  proof.options.training.affine = true;
  proof.manifest.options = option_list(proof.options);
  const std::string command = repeat_command(proof.manifest);
  CHECK(command.find("isonorm prove --model vit --data 'my data/it'\\''s' --forms rms_norm,crms_norm,crms_isometric") ==
        0);
  CHECK(command.find(" --affine --controls 4") != std::string::npos);
  CHECK(command.find("--weight-decay 0.01") != std::string::npos);
  CHECK(command.find("--context") == std::string::npos);
}

TEST_CASE("summary: a training in one sentence") {
  TrainingResult t = synthetic_training();
  CHECK(summary_sentence(t) ==
        "crms_norm, 1234 parameters, 200 steps: test loss 0.5000, test accuracy 87.10 % (871 of 1000 images)");
  t.options.model = &kGpt;
  CHECK(summary_sentence(t) ==
        "crms_norm, 1234 parameters, 200 steps: held-out loss 0.5000, perplexity 1.649, "
        "test accuracy 87.10 % (871 of 1000 characters)");
  t.evaluations.clear();
  CHECK(summary_sentence(t) == "crms_norm, 1234 parameters, 200 steps: nothing to test on");
}

TEST_CASE("scientific: two digits, zero and NaN") {
  CHECK(isonorm::scientific(3.14e-15) == "3.1e-15");
  CHECK(isonorm::scientific(0) == "0");
  CHECK(isonorm::scientific(std::nan("")) == "NaN");
}
