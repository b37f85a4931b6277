#include "equivalence/text/proof_text.h"

#include <algorithm>
#include <cmath>

#include "equivalence/judge/criterion.h"
#include "streams/form.h"

namespace isonorm::equivalence {
namespace {

std::string css_of(const RunResult& run) {
  const streams::FormRow* form = streams::find_row(run.form);
  if (!run.variant->raw()) return form && form->zero_mean_writers() ? "negative" : "plain";
  return run.device || !form ? "other" : form->css;
}

reports::Chart loss_chart(const std::string& title, const std::vector<const RunResult*>& runs, bool nested) {
  reports::Chart chart{.title = title, .width = nested ? 660 : 330, .height = 300};
  for (const RunResult* run : runs)
    chart.lines.push_back({run_name(*run), text(nested ? "nested " : "thin ", css_of(*run)), run->losses});
  fit_axis(chart);
  return chart;
}

reports::Chart deviation_chart(const ProofResult& proof, const Quantity& q) {
  reports::Chart chart{
      .title = text("Deviation of ", q.spoken, " per step"), .log_scale = true, .width = 330, .height = 330};
  const std::vector<double>& reached = proof.control.*q.path;  // the area that rounding reaches, from the lower edge up
  chart.bands.push_back(
      {"controls: the reference moved by one ulp", "band", std::vector<double>(reached.size()), reached});
  std::vector<double> limit = reached;
  for (double& c : limit) c = bound(c, proof.options.training.dtype);
  chart.lines.push_back({"bound: 30 times the controls + 64 eps", "bound", limit});
  chart.lines.push_back({"no detection above this: a third of the negative control", "limit",
                         std::vector<double>(limit.size(), proof.horizon.limit.*q.size)});
  if (!proof.horizon.ended_by.empty()) chart.mark = std::max(1, proof.horizon.steps);
  for (const RunResult& run : proof.runs) {
    const std::string label = run.expected == Verdict::different ? run.variant->parametrisation() : "";
    chart.lines.push_back({run_name(run), css_of(run), run.deviations.*q.path, label});
  }
  for (const reports::ChartLine& line : chart.lines)
    chart.steps = std::max(chart.steps, static_cast<int>(line.values.size()));
  return chart;
}

// One axis for all charts: whole decades that contain all positive values.
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
    chart.low = std::pow(10.0, std::floor(std::log10(low) - 0.5));  // zeros are drawn visibly below the smallest value
    chart.high = std::pow(10.0, std::ceil(std::log10(high)));
  }
}

}  // namespace

reports::Figure loss_figure(const ProofResult& proof) {
  std::vector<const RunResult*> forms = {&proof.reference}, negative;
  if (!proof.negative_reference.losses.empty()) negative.push_back(&proof.negative_reference);
  for (const RunResult& run : proof.runs) (run.expected == Verdict::equivalent ? forms : negative).push_back(&run);
  return {.name = "loss",
          .heading = "Loss",
          .css = "loss",
          .panels = {panel_of(loss_chart("Training loss of the reference and of every form", forms, true), "The forms"),
                     panel_of(loss_chart("Training loss of the negative controls", negative, false),
                              "The negative controls")},
          .caption =
              "Training loss per step. The curves of the forms lie on each other: they are drawn one inside the other, "
              "the reference widest. The negative controls run at a constant rate against a reference of their own."};
}

reports::Figure deviation_figure(const ProofResult& proof) {
  const char* names[] = {"Loss", "Gradient", "Weights"};
  std::vector<reports::Chart> charts;
  for (const Quantity& q : kQuantities) charts.push_back(deviation_chart(proof, q));
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
      "is the effect of rounding alone: up to the largest deviation of any control so far. A form is equivalent while "
      "it "
      "stays under the dashed bound; a negative control has to leave it at once. The bound detects mistakes below its "
      "limit, "
      "a third of what a negative control reaches";
  figure.caption += proof.horizon.ended_by.empty()
                        ? text(": all ", plural(proof.horizon.steps, "step"), ".")
                        : text(": up to step ", proof.horizon.steps, ", the horizon (the vertical line).");
  return figure;
}

}  // namespace isonorm::equivalence
