#include "equivalence/text/proof_figures.h"

#include <algorithm>
#include <cmath>

#include "equivalence/lockstep/criterion.h"
#include "equivalence/text/proof_text.h"
#include "reports/page.h"

namespace isonorm::equivalence {
namespace {

using Series = std::vector<double> Deviations::*;

std::string css_of(const RunResult& run) {
  if (!run.variant->raw()) return run.form == "rms_norm" ? "negative" : "plain";
  if (run.device) return "other";
  if (run.form == "rms_norm") return "rms";
  if (run.form == "crms_norm") return "crms";
  if (run.form == "crms_isometric") return "isometric";
  return run.form == "layer_norm" ? "reference" : "other";
}

reports::Chart loss_chart(const std::string& title, const std::vector<const RunResult*>& runs, bool nested) {
  reports::Chart chart{.title = title, .width = nested ? 660 : 330, .height = 300};
  for (const RunResult* run : runs)
    chart.lines.push_back({run_name(*run), text(nested ? "nested " : "thin ", css_of(*run)), run->losses});
  fit_axis(chart);
  return chart;
}

// The area that rounding reaches: from the lower edge up to D_c(t).
reports::ChartBand control_band(const ProofResult& proof, Series series) {
  const std::vector<double>& reached = proof.control.*series;
  return {"controls: the reference moved by one ulp", "band", std::vector<double>(reached.size()), reached};
}

reports::Chart deviation_chart(const ProofResult& proof, const char* title, Series series, double Magnitudes::*size) {
  reports::Chart chart{.title = title, .log_scale = true, .width = 330, .height = 330};
  chart.bands.push_back(control_band(proof, series));
  std::vector<double> limit = proof.control.*series;
  for (double& c : limit) c = bound(c, proof.options.training.dtype);
  chart.lines.push_back({"bound: 30 times the controls + 64 eps", "bound", limit});
  chart.lines.push_back({"where the bound has no power left: a third of what a wrong training reaches", "limit",
                         std::vector<double>(limit.size(), proof.horizon.limit.*size)});
  if (!proof.horizon.ended_by.empty()) chart.mark = std::max(1, proof.horizon.steps);
  for (const RunResult& run : proof.runs) {
    const std::string label = run.expected == Verdict::different ? run.variant->parametrisation() : "";
    chart.lines.push_back({run_name(run), css_of(run), run.deviations.*series, label});
  }
  for (const reports::ChartLine& line : chart.lines)
    chart.steps = std::max(chart.steps, static_cast<int>(line.values.size()));
  return chart;
}

// One axis for all charts: whole decades around everything positive in them.
void share_axis(std::vector<reports::Chart>& charts) {
  double low = 1e-15, high = 1e-3;
  const auto widen = [&](double v) {
    if (v > 0 && std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  };
  for (const reports::Chart& chart : charts) {
    for (const reports::ChartLine& line : chart.lines) std::for_each(line.values.begin(), line.values.end(), widen);
    for (const reports::ChartBand& band : chart.bands) std::for_each(band.high.begin(), band.high.end(), widen);
  }
  low = std::max(low, 1e-17);
  for (reports::Chart& chart : charts) {
    chart.low = std::pow(10.0, std::floor(std::log10(low) - 0.5));  // zeros lie visibly below the smallest value
    chart.high = std::pow(10.0, std::ceil(std::log10(high)));
  }
}

}  // namespace

reports::Figure loss_figure(const ProofResult& proof) {
  std::vector<const RunResult*> forms = {&proof.reference}, negative;
  if (!proof.negative_reference.losses.empty()) negative.push_back(&proof.negative_reference);
  for (const RunResult& run : proof.runs) (run.expected == Verdict::same ? forms : negative).push_back(&run);
  const auto panel = [](const char* heading, const char* title, const std::vector<const RunResult*>& runs,
                        bool nested) {
    reports::Panel p{.heading = heading, .drawing = loss_chart(title, runs, nested)};
    for (const RunResult* run : runs)
      p.legend.push_back({text(nested ? "nested " : "thin ", css_of(*run)), run_name(*run)});
    return p;
  };
  return {.name = "loss",
          .heading = "Loss",
          .css = "loss",
          .panels = {panel("The forms", "Training loss of the reference and of every form", forms, true),
                     panel("The negative controls", "Training loss of the negative controls", negative, false)},
          .caption =
              "Training loss per step. The curves of the forms lie on each other: they are drawn one inside the other, "
              "the reference widest. The negative controls run at a constant rate against a reference of their own."};
}

reports::Figure deviation_figure(const ProofResult& proof) {
  const char* names[] = {"Loss", "Gradient", "Weights"};
  std::vector<reports::Chart> charts = {
      deviation_chart(proof, "Deviation of the loss per step", &Deviations::loss, &Magnitudes::loss),
      deviation_chart(proof, "Deviation of the gradient per step", &Deviations::gradient, &Magnitudes::gradient),
      deviation_chart(proof, "Deviation of the weights per step", &Deviations::weight, &Magnitudes::weight)};
  share_axis(charts);
  reports::Figure figure{
      .name = "deviation",
      .heading = "Deviation from the reference",
      .css = "three",
      .legend = {
          {"band", "controls (layer_norm + 1 ulp)"}, {"bound", "bound of the criterion"}, {"limit", "its limit"}}};
  for (const RunResult& run : proof.runs) figure.legend.push_back({css_of(run), run_name(run)});
  for (size_t i = 0; i < charts.size(); ++i) figure.panels.push_back({.heading = names[i], .drawing = charts[i]});
  figure.caption =
      "Relative deviation at every step on a logarithmic axis; an exact zero lies on the lower edge. The shaded area "
      "is "
      "what rounding alone does: up to the largest deviation of any control so far. A form is the same while it stays "
      "under the dashed bound; a negative control has to leave it at once. The bound has power below its limit, a "
      "third "
      "of what a wrong training reaches";
  figure.caption += proof.horizon.ended_by.empty()
                        ? text(": all ", proof.horizon.steps, " steps.")
                        : text(": up to step ", proof.horizon.steps, ", the horizon, where the upright line stands.");
  return figure;
}

}  // namespace isonorm::equivalence
