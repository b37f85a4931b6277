// The text of proofs and trainings.
#include "equivalence/text/proof_text.h"

#include <limits>

#include "core/printed.h"
#include "tests/equivalence/room.h"
#include "tests/equivalence/synthetic.h"
#include "tests/support/markup.h"
#include "training/records/training_text.h"

using namespace isonorm::reports;

namespace {

std::string sentence(const ProofResult& proof) { return closing(document_of(proof)); }

// Computes the controls' maxima again.
void conclude_anew(ProofResult& proof) {
  for (RunResult& run : proof.runs)
    if (run.expected == Verdict::equivalent) run.control = {};
  conclude(proof);
}

// The values of a line in a chart.
std::vector<double> curve(const Figure& figure, size_t panel, const std::string& name) {
  for (const ChartLine& line : std::get<Chart>(figure.panels.at(panel).drawing).lines)
    if (line.name == name) return line.values;
  FAIL("no curve " << name);
  return {};
}

}  // namespace

TEST_CASE("proof: one row per run, reference and controls first, a gap between the kinds") {
  const ProofResult proof = synthetic_proof();
  const Document d = document_of(proof);
  const auto& rows = d.tables[0].rows;
  REQUIRE(rows.size() == 10 + 3);
  CHECK(rows[0][2].text.empty());
  CHECK(rows[0][5].text == "81.23 %");
  CHECK(rows[1].empty());
  CHECK(rows[2][0].text == "layer_norm + 1 ulp (1)");
  CHECK(rows[2][8].text.empty());
  CHECK(*rows[7][4].value == proof.runs[0].largest.weight);
  CHECK(*rows[7][4].beside == proof.largest_control.weight);
  CHECK(rows[7][8].tone == Tone::good);
  CHECK(rows[11][0].text == "rms_norm projected_once");
  CHECK(rows[11][7].text == "different");
  CHECK(rows[11][5].text.empty());
  CHECK(*rows[11][2].beside == proof.runs[3].control.loss.back());
  CHECK(*rows[11][1].value == 206794);
  CHECK(d.tables[1].rows[3][2].text == proof.runs[3].reason);
}

TEST_CASE("proof: curves of every run, and the horizon") {
  ProofResult proof = synthetic_proof(50);
  const Document whole = document_of(proof);
  CHECK(curve(whole.figures[0], 0, "rms_norm") == proof.runs[0].losses);
  CHECK(curve(whole.figures[0], 1, "crms_norm compressed_plain").size() == 20);
  CHECK(curve(whole.figures[1], 2, "crms_norm") == proof.runs[1].deviations.weight);
  CHECK(unstyled(to_html(whole)) == std::set<std::string>());
  CHECK_FALSE(contains(whole.figures[1].caption, "the vertical line"));
  for (int step : {30, 5}) {
    proof.controls[0].deviations.weight[static_cast<size_t>(step)] = 1;
    conclude_anew(proof);
    const Document d = document_of(proof);
    CHECK(d.verdict == (step == 30 ? "Equivalent" : "Undecided"));
    CHECK(contains(d.figures[1].caption, "up to step " + std::to_string(step) + ", the horizon"));
  }
  CHECK(document_of(proof).tables[0].rows[7][8].text == "undecided");
}

TEST_CASE("proof: a failed, a NaN, an empty one") {
  ProofResult proof = synthetic_proof(50);
  proof.runs[2].deviations.gradient[9] = std::numeric_limits<double>::quiet_NaN();
  proof.runs[2].losses[9] = std::numeric_limits<double>::quiet_NaN();
  conclude(proof);
  const Document d = document_of(proof);
  CHECK(d.tone == Tone::bad);
  CHECK(d.tables[0].rows[9][8].tone == Tone::bad);
  CHECK(contains(d.tables[1].rows[2][2].text, "gradient at step 10: NaN"));
  CHECK_FALSE(contains(to_html(d), "nan"));
  CHECK(isonorm::test::well_formed(to_html(document_of(ProofResult{}))));
}

TEST_CASE("proof: the sentence gives the figures, or the run that failed and why") {
  ProofResult proof = synthetic_proof();
  CHECK_THAT(
      sentence(proof),
      StartsWith("Equivalent. After 200 steps the weights of rms_norm, crms_norm and crms_isometric differ from ") &&
          Contains(isonorm::scientific(proof.largest_control.weight)) &&
          Contains("Both negative controls were detected. Detectable up to step 200: " +
                   isonorm::scientific(bound(proof.largest_control.loss, isonorm::DType::f64)) + " in the loss"));
  proof.runs[1].deviations.gradient[6] = 1e-3;
  conclude(proof);
  CHECK_THAT(sentence(proof), StartsWith("Different: crms_norm was expected to come out equivalent and came out "
                                         "different (gradient at step 7: 1.0e-03"));
  CHECK(sentence(ProofResult{}) == "Undecided: there was nothing to compare.");

  proof = synthetic_proof();
  proof.runs[3].deviations.gradient.back() = 1e-6;  // a negative control that ends too close
  conclude(proof);
  CHECK_THAT(sentence(proof), StartsWith("Undecided: rms_norm projected_once came out different, as expected, but it "
                                         "does not count (the deviation of gradients is 1.0e-06"));
}

TEST_CASE("proof: chaos ends the horizon, or leaves the verdict undecided") {
  ProofResult proof = synthetic_proof();
  proof.controls[0].deviations.weight[150] = 1e-4;
  proof.runs[0].deviations.weight[160] = 1e-4;  // within the bound, but beyond the horizon
  conclude_anew(proof);
  CHECK_THAT(sentence(proof), StartsWith("Equivalent. Up to step 150 of 200 the weights of ") &&
                                  Contains(". From step 151 on rounding alone moves weights by more than 1.0e-05 (30 "
                                           "times the controls)."));
  CHECK(sentence(proof).find("1.0e-04") == std::string::npos);
  proof.controls[0].deviations.gradient[12] = 1e-4;
  conclude_anew(proof);
  CHECK(sentence(proof).find(
            "Undecided: rms_norm was expected to come out equivalent and came out undecided (from step 13 on rounding "
            "alone "
            "moves gradients by more than 1.0e-05 (30 times the controls); a verdict needs 20 steps before that)") ==
        0);
}

TEST_CASE("proof: the command that repeats a proof has the options that are not defaults, quoted for a shell") {
  ProofResult proof = synthetic_proof();
  proof.options.training.data = "my data/it's";
  proof.options.training.model.transformer().affine = true;
  proof.manifest = manifest_of(proof.options);
  const std::string command = proof.manifest.command;
  CHECK(command == "isonorm prove --model vit --affine --data 'my data/it'\\''s' --steps 200");
  proof.options.training.data = "true";  // a text, not a flag
  proof.manifest = manifest_of(proof.options);
  CHECK(proof.manifest.command == "isonorm prove --model vit --affine --data true --steps 200");
  for (const auto& [name, value] : document_of(proof).environment.options)
    if (name == "data") CHECK(std::get<std::string>(value) == "true");
}

TEST_CASE("training: its result in one sentence") {
  TrainingResult t = synthetic_training();
  CHECK(closing(document_of(t)) ==
        "crms_norm, 1234 parameters, 200 steps: test loss 0.5000, test accuracy 87.10 % (871 of 1000 images).");
  t.options.model = kGpt;
  CHECK(closing(document_of(t)) ==
        "crms_norm, 1234 parameters, 200 steps: held-out loss 0.5000, perplexity 1.649, "
        "test accuracy 87.10 % (871 of 1000 tokens).");
  t.evaluations.clear();
  CHECK(closing(document_of(t)) == "crms_norm, 1234 parameters, 200 steps: nothing to test on.");
}

TEST_CASE("training: curves, evaluations and the steps of its log") {
  TrainingResult training = synthetic_training();
  Document d = document_of(training);
  REQUIRE(d.figures.size() == 2);
  const std::vector<double> losses = curve(d.figures[0], 0, "training loss");
  REQUIRE(losses.size() == 200);
  CHECK(std::isnan(losses[9]));
  CHECK(losses[10] == training.steps[0].loss);
  CHECK(d.figures[1].panels.size() == 3);
  REQUIRE(d.tables[0].rows.size() == 2);
  CHECK(*d.tables[0].rows[1][2].value == 0.871);
  CHECK(d.tables[0].rows[1][2].text == "87.10 %");
  CHECK(*d.tables[0].rows[1][3].value == 871);
  CHECK(d.tables[0].columns.size() == 5);  // no perplexity
  CHECK(contains(d.remarks[0], "Resumed after step 10: earlier steps are not shown"));
  CHECK(d.environment.command == training.manifest.command);
  CHECK(unstyled(to_html(d)) == std::set<std::string>());

  for (int step = 0; step < 10; ++step)
    training.earlier.steps.push_back({.step = step + 1, .lr = 1e-3, .loss = synthetic_loss(step)});
  training.earlier.evaluations = {{10, 2.5, 250, 1000}};
  d = document_of(training);
  CHECK(curve(d.figures[0], 0, "training loss")[9] == synthetic_loss(9));
  CHECK(contains(d.remarks[0], "earlier steps are from the log"));
  CHECK(d.tables[0].rows.size() == 3);
  training.earlier.steps.pop_back();
  CHECK(contains(document_of(training).remarks[0], "the log has 9 steps of the earlier ones"));
  training.options.model = kGpt;
  CHECK(*document_of(training).tables[0].rows[2][5].value == std::exp(0.5));
  training.evaluations.clear(), training.earlier = {};
  for (TrainingStep& s : training.steps) s.gradient_norm = {};
  CHECK(document_of(training).figures[1].panels.size() == 1);  // the learning rate
  CHECK(isonorm::test::well_formed(to_html(document_of(TrainingResult{}))));
}

TEST_CASE("scientific: two digits, zero and NaN") {
  CHECK(isonorm::scientific(3.14e-15) == "3.1e-15");
  CHECK(isonorm::scientific(0) == "0");
  CHECK(isonorm::scientific(std::nan("")) == "NaN");
}
