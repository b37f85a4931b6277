// The figures of a certificate; and its claims, with the measured figures and the figures that would have refuted them.
#include "lab/certificate/certificate.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "equivalence/judge/criterion.h"

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

// The weakest negative control that this dtype can detect.
const NegativeControlResult* weakest(const CertificateResult& r, DType dtype) {
  const NegativeControlResult* found = nullptr;
  for (const NegativeControlResult& n : r.negatives)
    if (n.dtype == dtype && n.detectable && (!found || n.excess < found->excess)) found = &n;
  return found;
}

const Trajectory* strongest(const CertificateResult& r, DType dtype) {
  const Trajectory* found = nullptr;
  for (const Trajectory* t : r.all_trajectories())
    if (t->dtype == dtype && (!found || !(t->share <= found->share))) found = t;
  return found;
}

// The trajectory whose bound comes closest to its limit.
const Trajectory* narrowest(const CertificateResult& r) {
  const std::vector<const Trajectory*> all = r.all_trajectories();
  const auto at = std::min_element(all.begin(), all.end(), [](auto* a, auto* b) { return a->margin < b->margin; });
  return at == all.end() ? nullptr : *at;
}

}  // namespace

std::vector<reports::Figure> certificate_figures(const CertificateResult& r) {
  return {distance_figure(r), horizon_figure(r), error_figure(r)};
}

reports::TextTable claim_table(const CertificateResult& r) {
  reports::TextTable table{.heading = "Claims, and the results that would have refuted them",
                           .columns = {"claim", "measured", "refuted by", "holds"}};
  const auto add = [&](const std::string& claim, const std::string& measured, const std::string& refuted, bool holds) {
    table.rows.push_back(
        {{claim}, {measured}, {refuted}, {holds ? "yes" : "no", holds ? reports::Tone::good : reports::Tone::bad}});
  };
  for (DType dtype : kTrained)
    if (const Trajectory* t = strongest(r, dtype)) {
      const NegativeControlResult* weak = weakest(r, dtype);
      add(text("every form trains as Pre-LN does in ", name_of(dtype)),
          printed("at most %.0f %% of the bound (%s, %s)", std::ceil(100 * t->share), name_of(*t).c_str(),
                  t->runs[t->worst].form.c_str()),
          text("more than 100 %", weak ? text(": the weakest detectable negative control reaches ",
                                              scientific(weak->excess), " times the bound")
                                       : std::string()),
          t->share <= 1);
    }
  if (const Trajectory* t = narrowest(r))
    add("the bound detects a negative control at every step that a verdict speaks of",
        text("margin at the end: at least ", scientific(t->margin), " (", name_of(*t), " in ", name_of(t->dtype), "); ",
             horizons_text(r)),
        text("a horizon before step ", kNegativeSteps, ": undecided"), t->verdict != Verdict::undecided);
  for (const NegativeControlResult& n : r.negatives)
    add(text(n.control.claim, n.dtype == DType::f64 ? "" : text(" (", name_of(n.dtype), ")")),
        text(n.control.name, ": ", scientific(n.excess), " times the bound", n.detectable ? "" : ", not detectable"),
        n.control.same_start ? text("less than ", scientific(separation(n.dtype)), " times the controls, or 1e-5")
                             : text("less than ", kLeastExcess, " times the bound"),
        n.as_expected);
  for (const DTypeErrors& d : r.gradient_errors) {
    add(text("gradients are exact to rounding in ", name_of(d.dtype), ", in each architecture alone"),
        printed(
            "medians up to %.2f times what rounding does (%s), single errors up to %.1f (%s), scales up to %.2f (%s)",
            d.median.value, d.median.of.c_str(), d.largest.value, d.largest.of.c_str(), d.scale.value,
            d.scale.of.c_str()),
        text("more than ", kMedianLimit, ", ", kLargestLimit, " or ", kScaleLimit,
             std::isnan(d.plain) ? std::string() : text("; plain RMSNorm has ", eps_text(d.plain), " eps")),
        d.as_expected);
    if (!std::isnan(d.rounded))
      add("maps belong in f32, rounded once (no part of the verdict)",
          text(eps_text(d.unrounded), " eps; computed in bf16 ", eps_text(d.rounded)),
          text("no more than ", eps_text(d.unrounded), " with maps in bf16"), d.rounded > d.unrounded);
  }
  for (const DTypeErrors& d : r.width2_errors)
    add(text("the degenerate width 2 has Pre-LN's values in ", name_of(d.dtype)),
        printed("median %.2f, largest %.1f times what rounding does", d.median.value, d.largest.value),
        text("more than ", kMedianLimit, " or ", kLargestLimit), d.as_expected);
  return table;
}

}  // namespace isonorm::equivalence
