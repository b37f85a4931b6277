#include "equivalence/text/proof_text.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/judge/result_fields.h"
#include "io/json_text.h"
#include "training/from_outside.h"
#include "training/model_row.h"

namespace isonorm::equivalence {
namespace {

enum class Kind { reference, control, form, negative };

// Reference, controls, forms and negative controls, with a gap between the kinds. A cell is empty if there is no value
// (a reference has no deviation, a negative control no test pass).
reports::TextTable runs_table(const ProofResult& proof) {
  reports::TextTable table{
      .heading = "Runs",
      .columns = {"run", "parameters", "loss\n/ control", "gradient\n/ control", "weights\n/ control", "test\naccuracy",
                  "predicts\notherwise", "expected", "observed"},
      .caption = "Largest relative deviation over the run / largest deviation of any control over the same steps."};
  if (proof.test_count > 0)
    table.caption +=
        text(" Tested on ", proof.test_count, " ", name_of(proof.options.training.model.row().input),
             " that the training never saw; \"predicts otherwise\" counts predictions that differ from layer_norm's.");
  Kind last = Kind::reference;
  const auto add = [&](const RunResult& run, Kind kind) {
    if (kind != last) table.rows.emplace_back();
    last = kind;
    std::vector<reports::TextCell> row = {{run_name(run)}, reports::count_cell(run.parameters)};
    for (const reports::TextCell& cell : deviation_cells(run))
      row.push_back(kind == Kind::reference ? reports::TextCell{} : cell);
    row.push_back(run.accuracy ? reports::percent_cell(*run.accuracy) : reports::TextCell{});
    row.push_back(run.differing_predictions && kind != Kind::reference ? reports::count_cell(*run.differing_predictions)
                                                                       : reports::TextCell{});
    const bool judged = kind == Kind::form || kind == Kind::negative;
    row.push_back({judged ? name_of(run.expected) : ""});
    row.push_back({judged ? name_of(run.verdict) : "", !judged || run.verdict == Verdict::undecided
                                                           ? reports::Tone::plain
                                                       : run.as_expected ? reports::Tone::good
                                                                         : reports::Tone::bad});
    table.rows.push_back(std::move(row));
  };
  add(proof.reference, Kind::reference);
  for (const RunResult& run : proof.controls) add(run, Kind::control);
  for (const RunResult& run : proof.runs) add(run, run.expected == Verdict::equivalent ? Kind::form : Kind::negative);
  return table;
}

reports::TextTable reasons_table(const ProofResult& proof) {
  reports::TextTable table{
      .heading = "How each run was judged", .columns = {"run", "observed", "reason"}, .detail = true};
  for (const RunResult& run : proof.runs) table.rows.push_back({{run_name(run)}, {name_of(run.verdict)}, {run.reason}});
  return table;
}

// The largest of the first `steps` values.
double largest_until(const std::vector<double>& values, int steps) {
  double most = 0;
  for (size_t t = 0; t < values.size() && t < static_cast<size_t>(steps); ++t) most = larger(most, values[t]);
  return most;
}

std::string capitalized(std::string s) {
  if (!s.empty()) s[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(s[0])));
  return s;
}

// The sentences of a proof if every run was as expected.
std::string equivalence_text(const ProofResult& proof) {
  const Horizon& h = proof.horizon;
  const size_t steps = proof.reference.losses.size();
  double weight = 0;
  std::vector<std::string> forms;
  int negative = 0;
  for (const RunResult& run : proof.runs) {
    if (run.expected == Verdict::different) {
      ++negative;
      continue;
    }
    forms.push_back(run_name(run));
    weight = larger(weight, largest_until(run.deviations.weight, h.steps));
  }
  const std::string end = end_of(h), note = proof.options.training.optimizer->note(proof.options.training.dtype);
  std::string result =
      text(end.empty() ? text("After ", plural(h.steps, "step")) : text("Up to step ", h.steps, " of ", steps),
           " the weights of ", in_words(forms), " differ from layer_norm's by at most ", scientific(weight),
           "; a change of one ulp in layer_norm's initial weights makes a difference of ",
           scientific(largest_until(proof.control.weight, h.steps)), ".");
  if (!end.empty()) result += text(" ", capitalized(end), ".");
  if (negative > 0)
    result += negative == 1   ? " The negative control was detected."
              : negative == 2 ? " Both negative controls were detected."
                              : text(" All ", negative, " negative controls were detected.");
  return text(result, " ", capitalized(detectable_text(h)), ".", note.empty() ? "" : text(" ", note, "."));
}

std::vector<std::string> method(const ProofResult& proof) {
  return {text(
      "All runs start from one initialisation and see the same batches. At every step the loss, the gradients (entry "
      "by entry, in the reference's coordinates, before clipping) and the weights (without the directions that the "
      "function cannot see) are compared with the reference. Let D_c(t) be the largest deviation of any control up to "
      "step t. A run is equivalent if D(t) <= 30 D_c(t) + 64 eps at every step, for each of the three, with eps = ",
      scientific(epsilon(proof.options.training.dtype)),
      ", as far as that bound lies below a third of what the weakest negative control reaches "
      "and below 1e-5 in f64, 1e-2 in f32: up to the horizon, step ",
      proof.horizon.steps, " here. If the horizon is nearer than ", kNegativeSteps,
      " steps and the end of the run, it is undecided. A negative control must start as the same function and within ",
      kNegativeSteps, " steps exceed ", separation(proof.options.training.dtype),
      " D_c and 1e-5 in each of the three.")};
}

// Loss and deviations of a run at `step` (from 1); null if the run has not reached it.
json step_json(const RunResult& run, size_t step) {
  const auto at = [step](const std::vector<double>& v) { return step <= v.size() ? json(v[step - 1]) : json(nullptr); };
  return {{"run", run_name(run)},
          {"loss", at(run.losses)},
          {"loss_deviation", at(run.deviations.loss)},
          {"gradient_deviation", at(run.deviations.gradient)},
          {"weight_deviation", at(run.deviations.weight)}};
}

}  // namespace

std::vector<reports::TextCell> deviation_cells(const RunResult& run) {
  std::vector<reports::TextCell> cells;
  for (const Quantity& q : kQuantities) {
    const std::vector<double>& control = run.control.*q.path;
    cells.push_back(control.empty() ? reports::number_cell(run.largest.*q.size)
                                    : reports::beside_cell(run.largest.*q.size, control.back()));
  }
  return cells;
}

std::string run_name(const RunResult& run) {
  if (run.device) return text(run.form, " on ", *run.device);
  if (*run.negative_control) return text(run.form, ", ", run.negative_control);
  if (!run.variant->raw()) return text(run.form, " ", run.variant->name);
  return run.seed == 0 ? run.form : text(run.form, " + 1 ulp (", run.seed, ")");
}

std::string sentence_of(const ProofResult& proof) {
  if (proof.interrupted) return "interrupted, nothing is concluded.";
  if (proof.runs.empty()) return "there was nothing to compare.";
  for (const RunResult& run : proof.runs) {
    if (run.as_expected || (proof.verdict == Verdict::different && run.verdict == Verdict::undecided)) continue;
    if (run.verdict == run.expected)
      return text(run_name(run), " came out ", name_of(run.verdict), ", as expected, but it does not count (",
                  run.reason, ").");
    return text(run_name(run), " was expected to come out ", name_of(run.expected), " and came out ",
                name_of(run.verdict), " (", run.reason, ").");
  }
  return equivalence_text(proof);
}

reports::Document document_of(const ProofResult& proof) {
  const training::TrainingOptions& o = proof.options.training;
  reports::Document d{.title = "One Transformer in several coordinates",
                      .about = text("Pre-LN, Pre-RMSNorm and Pre-CRMSNorm ", o.model.row().noun,
                                    "s trained side by side, and compared step by step. ", name_of(o.dtype), ", ",
                                    rows_text(o), ", ", plural(o.step_count(), "step"), "."),
                      .tone = tone_of(proof.verdict),
                      .verdict = heading_of(proof.verdict),
                      .sentence = sentence_of(proof),
                      .tables = {runs_table(proof), reasons_table(proof)},
                      .figures = {loss_figure(proof), deviation_figure(proof)},
                      .method = method(proof),
                      .environment = environment_of(proof.manifest, proof.seconds),
                      .result = proof_schema()(proof)};
  return d;
}

std::string log_step(const StepInfo& info) {
  const bool negative = info.phase == Phase::negative;
  json runs = json::array();
  if (!negative)
    for (const RunResult& run : info.so_far.controls) runs.push_back(step_json(run, info.step));
  for (const RunResult& run : info.so_far.runs)
    if (negative == (run.expected == Verdict::different)) runs.push_back(step_json(run, info.step));
  return dump({{"phase", name_of(info.phase)},
               {"step", info.step},
               {"lr", info.lr},
               {"loss", info.loss},
               {"seconds", info.seconds},
               {"runs", runs}}) +
         "\n";
}

std::string log_verdict(const ProofResult& proof) {
  const reports::Document d = document_of(proof);
  return dump({{"verdict", d.verdict}, {"sentence", closing(d)}, {"seconds", proof.seconds}}) + "\n";
}

}  // namespace isonorm::equivalence
