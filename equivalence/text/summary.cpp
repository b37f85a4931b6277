#include "equivalence/text/summary.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "equivalence/lockstep/criterion.h"
#include "training/model_row.h"

namespace isonorm::equivalence {
namespace {

// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  std::string result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += i + 1 == names.size() ? " and " : ", ";
    result += names[i];
  }
  return result;
}

SummaryRow row_of(const RunResult& run, SummaryRow::Kind kind) {
  SummaryRow row;
  row.kind = kind;
  row.name = run_name(run);
  row.parameters = text(run.parameters);
  if (run.accuracy) row.accuracy = printed("%.2f %%", 100 * *run.accuracy);
  if (kind == SummaryRow::Kind::reference) return row;
  row.loss = scientific(run.loss_deviation);
  row.gradient = scientific(run.gradient_deviation);
  row.weight = scientific(run.weight_deviation);
  if (run.differing_predictions) row.differing = text(*run.differing_predictions);
  if (kind == SummaryRow::Kind::control) return row;
  if (!run.control.loss.empty()) row.control_loss = scientific(run.control.loss.back());
  if (!run.control.gradient.empty()) row.control_gradient = scientific(run.control.gradient.back());
  if (!run.control.weight.empty()) row.control_weight = scientific(run.control.weight.back());
  row.expected = name_of(run.expected);
  row.observed = name_of(run.observed);
  row.as_expected = run.as_expected;
  return row;
}

// The largest of the first `steps` values.
double largest_until(const std::vector<double>& values, int steps) {
  double most = 0;
  for (size_t t = 0; t < values.size() && t < static_cast<size_t>(steps); ++t) most = larger(most, values[t]);
  return most;
}

// What was found where every run came out as expected.
std::string equivalence_text(const ProofResult& proof) {
  const Horizon& h = proof.horizon;
  const std::string note = proof.options.training.optimizer->note(proof.options.training.dtype);
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
  const std::string end = end_of(h);
  std::string result = end.empty() ? "" : text("same up to step ", h.steps, " of ", steps, "; ", end, ". ");
  result +=
      text(end.empty() ? "after " : "After ", h.steps, h.steps == 1 ? " step" : " steps", " on the same batches ",
           listed(forms), forms.size() == 1 ? " has" : " have", " the weights of layer_norm to ", scientific(weight),
           "; layer_norm moved by one ulp has them to ", scientific(largest_until(proof.control.weight, h.steps)));
  if (negative > 0)
    result += negative == 1 ? ", and the negative control came out different"
                            : text(", and the ", negative, " negative controls came out different");
  return result + text(". Horizon: ", h.steps, " of ", steps, " steps; up to there ", would_have_shown(h), ".",
                       note.empty() ? "" : text(" ", note, "."));
}

}  // namespace

std::string run_name(const RunResult& run) {
  if (run.device) return text(run.form, " on ", *run.device);
  if (*run.fault) return text(run.form, ", ", run.fault);
  if (!run.variant->raw()) return text(run.form, " ", run.variant->name);
  return run.seed == 0 ? run.form : text(run.form, " + 1 ulp (seed ", run.seed, ")");
}

std::vector<SummaryRow> summary_rows(const ProofResult& proof) {
  using Kind = SummaryRow::Kind;
  std::vector<SummaryRow> rows = {row_of(proof.reference, Kind::reference)};
  for (const RunResult& run : proof.controls) rows.push_back(row_of(run, Kind::control));
  for (const RunResult& run : proof.runs)
    rows.push_back(row_of(run, run.expected == Verdict::same ? Kind::form : Kind::negative));
  return rows;
}

reports::TextTable summary_table(const ProofResult& proof) {
  reports::TextTable table{
      .heading = "Runs",
      .columns = {"run", "parameters", "loss\n/ control", "gradient\n/ control", "weights\n/ control", "test\naccuracy",
                  "predicts\notherwise", "expected", "observed"},
      .caption =
          "Largest relative deviation over the run, beside it the largest of any control over the "
          "same steps."};
  if (proof.test_count > 0)
    table.caption += text(" Tested on ", proof.test_count, " ", name_of(proof.options.training.model->input),
                          " that the training never saw; the last of these columns counts predictions that are not "
                          "those of layer_norm.");
  const auto beside = [](const std::string& deviation, const std::string& control) {
    return reports::TextCell{control.empty() ? deviation : text(deviation, " / ", control)};
  };
  const std::vector<SummaryRow> rows = summary_rows(proof);
  for (size_t i = 0; i < rows.size(); ++i) {
    const SummaryRow& row = rows[i];
    if (i > 0 && row.kind != rows[i - 1].kind) table.rows.emplace_back();
    const reports::Tone tone = row.observed.empty() || row.observed == name_of(Verdict::undecided)
                                   ? reports::Tone::plain
                               : row.as_expected ? reports::Tone::good
                                                 : reports::Tone::bad;
    table.rows.push_back({{row.name},
                          {row.parameters},
                          beside(row.loss, row.control_loss),
                          beside(row.gradient, row.control_gradient),
                          beside(row.weight, row.control_weight),
                          {row.accuracy},
                          {row.differing},
                          {row.expected},
                          {row.observed, tone}});
  }
  return table;
}

const char* verdict_name(const ProofResult& proof) {
  return proof.verdict == Verdict::same        ? "Equivalent"
         : proof.verdict == Verdict::different ? "Not equivalent"
                                               : "Undecided";
}

std::string summary_sentence(const ProofResult& proof) {
  if (proof.interrupted) return "Interrupted: nothing is concluded.";
  const std::string verdict = text(verdict_name(proof), ": ");
  if (proof.runs.empty()) return verdict + "there was nothing to compare.";
  for (const RunResult& run : proof.runs) {
    if (run.as_expected || (proof.verdict == Verdict::different && run.observed == Verdict::undecided)) continue;
    if (run.observed == run.expected)
      return text(verdict, run_name(run), " came out ", name_of(run.observed), ", as expected, but it does not count (",
                  run.reason, ").");
    return text(verdict, run_name(run), " was expected to come out ", name_of(run.expected), " and came out ",
                name_of(run.observed), " (", run.reason, ").");
  }
  return verdict + equivalence_text(proof);
}

}  // namespace isonorm::equivalence
