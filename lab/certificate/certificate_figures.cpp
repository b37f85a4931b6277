// The figures of a certificate.
#include "core/printed.h"
#include "lab/certificate/certificate_text.h"

namespace isonorm::equivalence {
namespace {

// A row for each architecture, a dot for each of its trainings.
template <class Dot> std::vector<reports::DotRow> architecture_rows(const CertificateResult& r, Dot dot) {
  std::vector<reports::DotRow> rows;
  const size_t count = r.options.architectures.size();
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({.label = r.options.architectures[i].name, .dots = {}});
    for (size_t at = i; at < r.trajectories.size(); at += count) rows.back().dots.push_back(dot(r.trajectories[at]));
  }
  return rows;
}

std::vector<reports::LegendItem> forms_legend() {
  return {{"dot solid rms", "rms_norm"}, {"dot solid crms", "crms_norm"}, {"dot solid isometric", "crms_isometric"}};
}

// Every training as a dot: its largest deviation as a multiple of the bound.
reports::Figure distance_figure(const CertificateResult& r) {
  reports::DotPlot forms{.title = "Largest deviation of each architecture, as a multiple of the bound",
                         .axis = "largest deviation / bound",
                         .low = 1e-3,
                         .high = 10,
                         .width = 560,
                         .zones = {{"good", "equivalent", 1e-3, 1}, {"bad", "different", 1, 10}}};
  forms.rows = architecture_rows(r, [](const Trajectory& t) -> reports::Dot {
    const std::string& form = t.runs[t.worst].form;
    return {short_name(form), printed("%s in %s: %.3f", form.c_str(), name_of(t.dtype), t.share), t.share,
            t.dtype == DType::f64};
  });
  reports::DotPlot negative{.title = "Largest deviation of each negative control, as a multiple of the bound",
                            .axis = "largest deviation / bound",
                            .low = 0.1,
                            .high = 1e15,
                            .width = 560,
                            .zones = {{"good", "", 0.1, 1}, {"bad", "different", 1, 1e15}}};
  for (const NegativeControlResult& n : r.negatives)
    if (n.dtype == DType::f64)
      negative.rows.push_back({n.control.name, {{"negative", scientific(n.excess), n.excess, true}}});
  for (const NegativeControlResult& n : r.negatives)
    for (reports::DotRow& row : negative.rows)
      if (n.dtype != DType::f64 && row.label == n.control.name)
        row.dots.push_back(
            {"negative", text(scientific(n.excess), " in ", name_of(n.dtype), n.detectable ? "" : ", not detectable"),
             n.excess, false});
  std::vector<reports::LegendItem> legend = forms_legend();
  legend.push_back({"dot rms", "hollow: in f32"});
  legend.push_back({"dot solid negative", "negative control"});
  return {
      .name = "distance",
      .heading = "How far from the bound",
      .css = "two",
      .legend = legend,
      .panels = {{.heading = "The forms", .drawing = forms}, {.heading = "The negative controls", .drawing = negative}},
      .caption =
          "For each architecture, the form with the largest deviation relative to its bound, in f64 and in f32. The "
          "bound is 30 times the controls plus 64 eps, at the same step."};
}

// The margin at the end of every training: the bound's limit divided by the bound.
reports::Figure horizon_figure(const CertificateResult& r) {
  reports::DotPlot plot{.title = "Power left at the end of each training",
                        .axis = "margin at the last step",
                        .low = 0.1,
                        .high = 1e12,
                        .width = 1120,
                        .zones = {{"bad", "the horizon lies before the end", 0.1, 1}, {"good", "", 1, 1e12}}};
  plot.rows = architecture_rows(r, [](const Trajectory& t) -> reports::Dot {
    return {"other",
            printed("%s: horizon %d of %d steps, margin %.1e", name_of(t.dtype), t.horizon.steps, t.steps, t.margin),
            t.margin, t.dtype == DType::f64};
  });
  return {.name = "horizon",
          .heading = "Horizons",
          .legend = {{"dot solid other", "f64"}, {"dot other", "f32"}},
          .panels = {{.drawing = plot}},
          .caption =
              "A third of a negative control's deviation, divided by the bound: the least over loss, gradients and "
              "weights. Rounding differences grow along a path, and the bound with them; the horizon ends when the "
              "bound reaches a third of a negative control's deviation."};
}

reports::Figure error_figure(const CertificateResult& r) {
  reports::DotPlot plot{.title = "Errors of gradients at random points in units of eps",
                        .axis = "error in eps of the dtype",
                        .low = 1,
                        .high = 1e16,
                        .width = 1120};
  for (const DTypeErrors& d : r.gradient_errors) {
    reports::DotRow row{.label = name_of(d.dtype), .dots = {}};
    for (size_t f = 0; f < kPointFormCount; ++f)
      row.dots.push_back({f == 0 ? "other" : short_name(name_of_form(f)),
                          printed("%s: %.1f", name_of_form(f), d.forms[f]), d.forms[f], true});
    row.dots.push_back({"negative", text("plain RMSNorm: ", scientific(d.plain)), d.plain, true});
    plot.rows.push_back(row);
  }
  std::vector<reports::LegendItem> legend = {{"dot solid other", "Pre-LN itself"}};
  for (const reports::LegendItem& item : forms_legend()) legend.push_back(item);
  legend.push_back({"dot solid negative", "plain RMSNorm, whose gradient is another one"});
  return {
      .name = "errors",
      .heading = "Gradients at random points",
      .legend = legend,
      .panels = {{.drawing = plot}},
      .caption =
          "Geometric means of the largest error against Pre-LN in f64. Along a path bf16 detects too little: rounding "
          "alone moves its gradients by percents. At single points it has."};
}

}  // namespace

std::vector<reports::Figure> certificate_figures(const CertificateResult& r) {
  return {distance_figure(r), horizon_figure(r), error_figure(r)};
}

}  // namespace isonorm::equivalence
