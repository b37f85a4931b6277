// The result of a proof for programs.
#include "equivalence/judge/result_fields.h"
#include "equivalence/text/proof_text.h"

namespace isonorm::equivalence {
namespace {

// A run of the proof, as a program sees it.
struct JudgedRun {
  const RunResult& run;
  const char* kind;
  Magnitudes control;  // the farthest control over the same steps

  bool judged() const { return kind == std::string_view("form") || kind == std::string_view("negative"); }
};

std::vector<JudgedRun> judged_runs(const ProofResult& proof) {
  std::vector<JudgedRun> all;
  const auto add = [&all](const RunResult& run, const char* kind) {
    Magnitudes control;
    for (const Quantity& q : kQuantities)
      if (const std::vector<double>& reached = run.control.*q.path; !reached.empty()) control.*q.size = reached.back();
    all.push_back({run, kind, control});
  };
  add(proof.reference, "reference");
  for (const RunResult& run : proof.controls) add(run, "control");
  for (const RunResult& run : proof.runs) add(run, run.expected == Verdict::different ? "negative" : "form");
  return all;
}

struct Reach {
  const Horizon& horizon;
  size_t of;
};

reports::Fields<JudgedRun> run_fields() {
  const auto curves = reports::Fields<Deviations>()
                          .add("loss", &Deviations::loss, "of the loss at every step")
                          .add("gradients", &Deviations::gradient, "of the gradients at every step")
                          .add("weights", &Deviations::weight, "of the weights at every step");
  const auto if_judged = [](auto value) {
    return [value](const JudgedRun& r) { return r.judged() ? std::optional(value(r.run)) : std::nullopt; };
  };
  return reports::Fields<JudgedRun>()
      .add(
          "name", [](const JudgedRun& r) { return run_name(r.run); }, "as the screen has it")
      .add(
          "form", [](const JudgedRun& r) { return r.run.form; }, "form of its residual stream")
      .add("kind", &JudgedRun::kind, "`reference`, `control` (the reference moved by one ulp), `form` or `negative`")
      .add("expected", if_judged([](const RunResult& r) { return name_of(r.expected); }),
           "`equivalent` or `different`; null: it is not judged")
      .add("observed", if_judged([](const RunResult& r) { return name_of(r.verdict); }),
           "`equivalent`, `different` or `undecided`; null: it is not judged")
      .add("as_expected", if_judged([](const RunResult& r) { return r.as_expected; }),
           "true: by the margin that a negative control needs, too; null: it is not judged")
      .add("reason", if_judged([](const RunResult& r) { return r.reason; }),
           "the step and the quantity that decided; null: it is not judged")
      .add(
          "first_difference",
          [](const JudgedRun& r) {
            return r.run.first_difference ? std::optional(r.run.first_difference->place) : std::nullopt;
          },
          "the first entry beyond the bound; null: none", difference_fields())
      .add(
          "parameters", [](const JudgedRun& r) { return r.run.parameters; }, "number of trained numbers")
      .add(
          "accuracy", [](const JudgedRun& r) { return r.run.accuracy; }, "on test examples; null: not tested")
      .add(
          "other_predictions", [](const JudgedRun& r) { return r.run.differing_predictions; },
          "test predictions that are not the reference's; null: not tested")
      .add(
          "deviation", [](const JudgedRun& r) { return r.run.largest; },
          "largest relative deviation from the reference at any step", magnitude_fields())
      .add("control", &JudgedRun::control, "the same of the farthest control over the same steps", magnitude_fields())
      .add(
          "losses", [](const JudgedRun& r) { return r.run.losses; }, "training loss at every step")
      .add(
          "deviations", [](const JudgedRun& r) { return r.run.deviations; }, "at every step", curves);
}

}  // namespace

const reports::Schema<ProofResult>& proof_schema() {
  const auto horizon =
      reports::Fields<Reach>()
          .add(
              "steps", [](const Reach& r) { return r.horizon.steps; }, "the verdict counts up to this step")
          .add("of", &Reach::of, "steps that were trained")
          .add(
              "ended_by", [](const Reach& r) { return if_any(r.horizon.ended_by); },
              "quantity whose bound reaches its limit at the next step; null: none does")
          .add(
              "term", [](const Reach& r) { return if_any(r.horizon.term); },
              "the largest term of the bound there; null: as above");
  static const reports::Schema<ProofResult> schema{
      "prove", "Trainings in lockstep, and whether the forms are one model: `isonorm prove`.",
      reports::Fields<ProofResult>()
          .add(
              "verdict", [](const ProofResult& p) { return name_of(p.verdict); },
              "`equivalent`: every run came out as expected; `different`: one did not; `undecided`")
          .add(
              "sentence", [](const ProofResult& p) { return sentence_of(p); },
              "the verdict and the numbers that decide")
          .add(
              "horizon",
              [](const ProofResult& p) {
                return Reach{p.horizon, p.reference.losses.size()};
              },
              "the steps at which a negative control can be told from rounding", horizon)
          .add(
              "detectable",
              [](const ProofResult& p) {
                return p.horizon.steps > 0 ? std::optional(p.horizon.detectable) : std::nullopt;
              },
              "relative deviations from here on are detected at any step up to the horizon; null: it has no step",
              magnitude_fields())
          .add(
              "limit", [](const ProofResult& p) { return p.horizon.limit; },
              "the horizon ends before a bound exceeds these", magnitude_fields())
          .add("control", &ProofResult::largest_control, "largest deviation of any control", magnitude_fields())
          .add("tested_on", &ProofResult::test_count, "test images, or tokens of held-out text; 0: no test")
          .add("runs", judged_runs, "the reference, the controls, the forms, the negative controls", run_fields())
          .add(
              "negative_reference_losses", [](const ProofResult& p) { return p.negative_reference.losses; },
              "losses of the reference of the negative controls, which train at a constant rate")};
  return schema;
}

}  // namespace isonorm::equivalence
