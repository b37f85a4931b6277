#include "equivalence/summary.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "equivalence/criterion.h"
#include "equivalence/printed.h"

namespace isonorm::equivalence {
namespace {

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./,+=:@").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string result = "'";
  for (char c : word) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  result += '\'';
  return result;
}

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

}  // namespace

std::string scientific(double value) {
  if (std::isnan(value)) return "NaN";
  return value == 0 ? "0" : printed("%.1e", value);
}

std::string run_name(const RunResult& run) {
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

std::string summary_sentence(const ProofResult& proof) {
  if (proof.interrupted) return "Interrupted: nothing is concluded.";
  if (proof.runs.empty()) return "Not equivalent: there was nothing to compare.";
  double weight = 0;
  std::vector<std::string> forms;
  int negative = 0;
  for (const RunResult& run : proof.runs) {
    if (!run.as_expected && run.observed == run.expected)
      return text("Not equivalent: ", run_name(run), " came out ", name_of(run.observed),
                  ", as expected, but it does not count (", run.reason, ").");
    if (!run.as_expected)
      return text("Not equivalent: ", run_name(run), " was expected to come out ", name_of(run.expected),
                  " and came out ", name_of(run.observed), " (", run.reason, ").");
    if (run.expected == Verdict::different) {
      ++negative;
      continue;
    }
    forms.push_back(run.form);
    weight = std::max(weight, run.weight_deviation);
  }
  std::string result =
      text("Equivalent: after ", proof.reference.losses.size(), " steps on the same batches ", listed(forms),
           forms.size() == 1 ? " has" : " have", " the weights of layer_norm to ", scientific(weight),
           "; layer_norm moved by one ulp has them to ", scientific(proof.control_weight));
  if (negative > 0)
    result +=
        text(", and the ", negative, negative == 1 ? " negative control" : " negative controls", " came out different");
  return result + ".";
}

std::string summary_sentence(const TrainingResult& training) {
  std::string result =
      text(training.form, ", ", training.parameters, " parameters, ", training.options.step_count(), " steps: ");
  if (training.evaluations.empty()) return result + "nothing to test on";
  const Evaluation& e = training.evaluations.back();
  const bool images = training.options.model == ModelKind::vit;
  if (!images) result += printed("held-out loss %.4f, perplexity %.3f, ", e.loss, std::exp(e.loss));
  return result + text(printed("test accuracy %.2f %%", 100 * e.accuracy()), " (", e.right, " of ", e.predictions,
                       images ? " images)" : " characters)");
}

std::string summary_warning(const ProofResult& proof) {
  const double drift = std::max({proof.control_loss, proof.control_gradient, proof.control_weight});
  const double hidden = bound(drift, proof.options.dtype);
  if (proof.options.dtype != DType::f64 || !(hidden > 1e-5)) return "";
  return text("Rounding alone drives two runs apart by ", scientific(drift), " here, so a difference below ",
              scientific(hidden), " would not show: lower --lr or --steps.");
}

std::string repeat_command(const Manifest& manifest) {
  std::string command = "isonorm " + manifest.verb;
  for (const auto& [name, value] : manifest.options) {
    if (value.empty() || value == "false") continue;  // "false" and "true": a flag
    command += text(" --", name);
    if (value != "true") command += text(" ", quoted(value));
  }
  return command;
}

}  // namespace isonorm::equivalence
