#include "equivalence/report.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "equivalence/criterion.h"
#include "equivalence/report_page.h"
#include "equivalence/summary.h"
#include "equivalence/svg.h"

namespace isonorm::equivalence {
namespace {

using Series = std::vector<double> Deviations::*;

std::string css_of(const RunResult& run) {
  if (!run.variant->raw()) return run.form == "rms_norm" ? "negative" : "plain";
  if (run.form == "rms_norm") return "rms";
  if (run.form == "crms_norm") return "crms";
  if (run.form == "crms_isometric") return "isometric";
  return run.form == "layer_norm" ? "reference" : "other";
}

// --- loss ---

Chart loss_chart(const std::string& title, const std::vector<const RunResult*>& runs, bool nested) {
  Chart chart{.title = title, .width = nested ? 660 : 330, .height = 300};
  for (const RunResult* run : runs)
    chart.lines.push_back({run_name(*run), text(nested ? "nested " : "thin ", css_of(*run)), run->losses});
  fit_loss_axis(chart);
  return chart;
}

std::string loss_figure(const ProofResult& proof) {
  std::vector<const RunResult*> forms = {&proof.reference}, negative;
  if (!proof.negative_reference.losses.empty()) negative.push_back(&proof.negative_reference);
  for (const RunResult& run : proof.runs) (run.expected == Verdict::same ? forms : negative).push_back(&run);
  const auto panel = [](const char* heading, const char* title, const std::vector<const RunResult*>& runs,
                        bool nested) {
    std::string out = text("<div><h3>", heading, "</h3>\n<ul class=\"legend\">\n");
    for (const RunResult* run : runs)
      out += legend_item(text(nested ? "nested " : "thin ", css_of(*run)), run_name(*run));
    return out + "</ul>\n" + svg_chart(loss_chart(title, runs, nested)) + "</div>\n";
  };
  std::string out = "<h2>Loss</h2>\n<figure>\n<div class=\"charts loss\">\n";
  out += panel("The forms", "Training loss of the reference and of every form", forms, true);
  out += panel("The negative controls", "Training loss of the negative controls", negative, false);
  out +=
      "</div>\n<figcaption>Training loss per step. The curves of the forms lie on each other: they are drawn one "
      "inside "
      "the other, the reference widest. The negative controls run at a constant rate against a reference of their "
      "own.</figcaption>\n</figure>\n";
  return out;
}

// --- deviations ---

// The area that rounding reaches: from the lower edge up to D_c(t).
ChartBand control_band(const ProofResult& proof, Series series) {
  const std::vector<double>& reached = proof.control.*series;
  return {"controls: the reference moved by one ulp", "band", std::vector<double>(reached.size()), reached};
}

Chart deviation_chart(const ProofResult& proof, const char* title, Series series) {
  Chart chart{.title = title, .log_scale = true, .width = 330, .height = 330};
  chart.bands.push_back(control_band(proof, series));
  std::vector<double> limit = proof.control.*series;
  for (double& c : limit) c = bound(c, proof.options.dtype);
  chart.lines.push_back({"bound: 30 times the controls + 64 eps", "bound", limit});
  for (const RunResult& run : proof.runs) {
    const std::string label = run.expected == Verdict::different ? run.variant->parametrisation() : "";
    chart.lines.push_back({run_name(run), css_of(run), run.deviations.*series, label});
  }
  for (const ChartLine& line : chart.lines) chart.steps = std::max(chart.steps, static_cast<int>(line.values.size()));
  return chart;
}

// One axis for all charts: whole decades around everything positive in them.
void share_axis(std::vector<Chart>& charts) {
  double low = 1e-15, high = 1e-3;
  const auto widen = [&](double v) {
    if (v > 0 && std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  };
  for (const Chart& chart : charts) {
    for (const ChartLine& line : chart.lines) std::for_each(line.values.begin(), line.values.end(), widen);
    for (const ChartBand& band : chart.bands) std::for_each(band.high.begin(), band.high.end(), widen);
  }
  low = std::max(low, 1e-17);
  for (Chart& chart : charts) {
    chart.low = std::pow(10.0, std::floor(std::log10(low) - 0.5));  // zeros lie visibly below the smallest value
    chart.high = std::pow(10.0, std::ceil(std::log10(high)));
  }
}

std::string deviation_figure(const ProofResult& proof) {
  const char* names[] = {"Loss", "Gradient", "Weights"};
  std::vector<Chart> charts = {deviation_chart(proof, "Deviation of the loss per step", &Deviations::loss),
                               deviation_chart(proof, "Deviation of the gradient per step", &Deviations::gradient),
                               deviation_chart(proof, "Deviation of the weights per step", &Deviations::weight)};
  share_axis(charts);
  std::string out = "<h2>Deviation from the reference</h2>\n<figure>\n<ul class=\"legend\">\n";
  out += legend_item("band", "controls (layer_norm + 1 ulp)");
  out += legend_item("bound", "bound of the criterion");
  for (const RunResult& run : proof.runs) out += legend_item(css_of(run), run_name(run));
  out += "</ul>\n<div class=\"charts three\">\n";
  for (size_t i = 0; i < charts.size(); ++i)
    out += text("<div><h3>", names[i], "</h3>\n", svg_chart(charts[i]), "</div>\n");
  out +=
      "</div>\n<figcaption>Relative deviation at every step on a logarithmic axis; an exact zero lies on the lower "
      "edge. "
      "The shaded area is what rounding alone does: up to the largest deviation of any control so far. A form is the "
      "same while it stays under the dashed bound; a negative control has to leave it at "
      "once.</figcaption>\n</figure>\n";
  return out;
}

// --- table ---

std::string deviation_cell(const std::string& deviation, const std::string& control) {
  if (deviation.empty()) return "<td></td>";
  return text("<td>", deviation, control.empty() ? "" : text(" <small>/ ", control, "</small>"), "</td>");
}

std::string result_table(const ProofResult& proof) {
  const std::vector<SummaryRow> rows = summary_rows(proof);
  std::string out =
      "<h2>Runs</h2>\n<figure><div class=\"scroll\"><table>\n<tr><th>run</th><th>parameters</th>"
      "<th>loss <small>/ control</small></th><th>gradient <small>/ control</small></th>"
      "<th>weights <small>/ control</small></th><th>test<br>accuracy</th><th>predictions<br>that differ</th>"
      "<th>expected</th><th>observed</th></tr>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const SummaryRow& row = rows[i];
    const bool last_of_kind = i + 1 < rows.size() && rows[i + 1].kind != row.kind;
    out += text("<tr", last_of_kind ? " class=\"group\"" : "", "><td>", escaped(row.name), "</td><td>", row.parameters,
                "</td>", deviation_cell(row.loss, row.control_loss), deviation_cell(row.gradient, row.control_gradient),
                deviation_cell(row.weight, row.control_weight), "<td>", row.accuracy, "</td><td>", row.differing,
                "</td><td>", row.expected, "</td><td class=\"", row.as_expected ? "good" : "bad", "\">", row.observed,
                "</td></tr>\n");
  }
  out +=
      "</table></div>\n<figcaption>Largest relative deviation over the run, beside it the largest of any control over "
      "the same steps.";
  if (proof.test_count > 0)
    out += text(" Tested on ", proof.test_count, proof.options.model == ModelKind::vit ? " images" : " characters",
                " that the training never saw.");
  return out + "</figcaption></figure>\n";
}

// --- text ---

// Escaped, with the hyphen of "1.4e-13" made one that no line breaks at.
std::string unbroken(const std::string& s) {
  std::string result = escaped(s);
  for (size_t at = 0; (at = result.find("e-", at)) != std::string::npos; at += 2)
    if (at > 0 && std::isdigit(static_cast<unsigned char>(result[at - 1]))) result.replace(at + 1, 1, "\u2011");
  return result;
}

std::string verdict_box(const ProofResult& proof) {
  const std::string warning = summary_warning(proof);
  const std::string sentence = summary_sentence(proof);
  const size_t colon = sentence.find(": ");  // the box has the word before it as its headline
  std::string rest = colon == std::string::npos ? sentence : sentence.substr(colon + 2);
  if (!rest.empty()) rest[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(rest[0])));
  return text("<div class=\"verdict ", proof.equivalent ? "good" : "bad", "\"><strong>",
              proof.equivalent ? "Equivalent" : "Not equivalent", "</strong><span>", unbroken(rest),
              warning.empty() ? "" : text(" ", escaped(warning)), "</span></div>\n");
}

std::string criterion_text(const ProofResult& proof) {
  std::string out = text(
      "<h2>How it is decided</h2>\n<p>All runs start from one initialisation and see the same batches. At every step "
      "the loss, "
      "the gradients (entry by entry, in the reference's coordinates, before clipping) and the weights (without the "
      "directions "
      "that the function cannot see) are compared with the reference. Let D<sub>c</sub>(t) be the largest deviation of "
      "any "
      "control up to step t. A run is the <em>same</em> when D(t) &le; 30 D<sub>c</sub>(t) + 64 eps at every step, for "
      "each of the "
      "three, with eps = ",
      scientific(epsilon(proof.options.dtype)), ". A negative control must start as the same function and after ",
      kNegativeSteps, " steps exceed ", separation(proof.options.dtype),
      " D<sub>c</sub> and 1e-5 in each of the three.</p>\n<ul class=\"reasons\">\n");
  for (const RunResult& run : proof.runs)
    out +=
        text("<li>", escaped(run_name(run)), ": ", name_of(run.observed), " &ndash; ", unbroken(run.reason), "</li>\n");
  return out + "</ul>\n";
}

}  // namespace

std::string report_html(const ProofResult& proof) {
  std::string out =
      text("<h1>One Transformer in several coordinates</h1>\n<p class=\"soft\">Pre-LN, Pre-RMSNorm and Pre-CRMSNorm ",
           proof.options.model == ModelKind::vit ? "Vision Transformers" : "language models",
           " trained side by side, and compared step by step. ", name_of(proof.options.dtype), ", ",
           name_of(proof.options.optimizer), ", ", proof.options.step_count(), " steps.</p>\n");
  out +=
      verdict_box(proof) + loss_figure(proof) + deviation_figure(proof) + result_table(proof) + criterion_text(proof);
  out += repeat_html(proof.manifest) + environment_html(proof.manifest, proof.seconds);
  return report_page(text("isonorm: ", proof.equivalent ? "equivalent" : "not equivalent"), out);
}

}  // namespace isonorm::equivalence
