#include "lab/certificate/certificate.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/judge/result_fields.h"
#include "equivalence/text/proof_text.h"

namespace isonorm::equivalence {
namespace {

reports::TextCell negative_cell(const NegativeControlResult& n) {
  if (!n.detectable && !n.run.as_expected) {
    const bool seen = n.run.verdict == Verdict::different;
    return {seen ? "different, not by the margin" : "not detectable", reports::Tone::plain};
  }
  return {name_of(n.run.verdict), n.as_expected ? reports::Tone::good : reports::Tone::bad};
}

// "equivalent, 8 %", "equivalent up to 31 of 50, 8 %", "undecided", "different, 120 %".
reports::TextCell trajectory_cell(const Trajectory& t) {
  const bool ended = t.verdict == Verdict::equivalent && !t.horizon.ended_by.empty();
  const std::string share = t.verdict == Verdict::undecided ? "" : printed(", %.0f %%", std::ceil(100 * t.share));
  return {text(name_of(t.verdict), ended ? text(" up to ", t.horizon.steps, " of ", t.steps) : "", share),
          tone_of(t.verdict), t.share};
}

// A table row with the deviations of a run in the middle.
using Cells = std::vector<reports::TextCell>;
Cells row_of(Cells before, const RunResult& run, const Cells& after) {
  for (const Cells& more : {deviation_cells(run), after}) before.insert(before.end(), more.begin(), more.end());
  return before;
}

reports::TextCell eps_cell(double errors, reports::Tone tone = reports::Tone::plain) {
  return {eps_text(errors), tone, errors};
}

int undetectable(const CertificateResult& r) {
  return static_cast<int>(std::count_if(r.negatives.begin(), r.negatives.end(), [](const auto& n) {
    return !n.detectable && n.run.verdict != Verdict::different;
  }));
}

double most_alone(const CertificateResult& r) {
  double most = 0;
  for (const Trajectory* t : r.all_trajectories()) most = larger(most, t->share_alone);
  return most;
}

// "0 in f64, 0 in f32, 3375 in bf16".
std::string redrawn_text(const CertificateResult& r) {
  std::string out;
  for (const DTypeErrors& d : r.gradient_errors)
    out += text(out.empty() ? "" : ", ", d.redrawn, " in ", name_of(d.dtype));
  return out;
}

// "7 further regimes do, too, ".
std::string beside_text(const CertificateResult& r) {
  const size_t count = r.regimes.size() / std::size(kTrained);
  return count == 0 ? "" : text(count, count == 1 ? " further regime does, too, " : " further regimes do, too, ");
}

// The names of the architectures for which `which` holds: "mine, other"; empty if there are none.
template <class Which> std::string names_of(const CertificateResult& r, Which&& which) {
  std::string names;
  for (const Architecture& a : r.options.architectures)
    if (which(a)) names += text(names.empty() ? "" : ", ", a.name);
  return names;
}

// "eps by 1.5e-08, an entry by 5.7e-14, a row by 5.7e-14".
std::string detectable_text_of(const CertificateResult& r, DType dtype) {
  std::string out;
  for (NegativeControl mistake : kSizedMistakes) {
    const double x = detectable_everywhere(r.detectable, mistake, dtype);
    out += text(out.empty() ? "" : ", ",
                mistake == NegativeControl::eps     ? "another eps from a factor 1 + "
                : mistake == NegativeControl::entry ? "an entry of a weight from "
                                                    : "a row of a weight from a factor 1 + ",
                std::isnan(x) ? "(not detected)" : scientific(x), " on");
  }
  return out;
}

std::string reason(const CertificateResult& r) {
  if (r.interrupted) return "interrupted, nothing is concluded.";
  if (!r.equivalent()) return text(r.reason, ".");
  std::string errors, seen;
  for (const DTypeErrors& d : r.gradient_errors) {
    errors += text(errors.empty() ? "" : ", ", eps_text(*std::max_element(d.forms + 1, std::end(d.forms))),
                   " (Pre-LN itself ", eps_text(d.forms[0]), ") in ", name_of(d.dtype));
    seen += text(seen.empty() ? "" : ", ", scientific(d.always_seen), " in ", name_of(d.dtype));
  }
  const auto count = static_cast<int64_t>(r.options.architectures.size()),
             looked = static_cast<int64_t>(r.options.looked_at().size()),
             wrong = static_cast<int64_t>(r.options.negative_controls.size());
  const int silent = undetectable(r);
  const std::string outside = names_of(r, [](const Architecture&a) { return from_outside(a); }),
                    unseen = names_of(r, [&](const Architecture&a) { return !r.options.looks_at(a); });
  std::string out =
      text(plural(count, "architecture"), outside.empty() ? "" : text(" (from outside: ", outside, ")"),
           count == 1 ? " trains" : " train", " in every form as Pre-LN does (f64 ", r.options.steps_in(DType::f64),
           " steps, f32 ", r.options.steps_in(DType::f32), "; ", horizons_text(r), "), ", beside_text(r),
           plural(wrong, "negative control"), " came out different in f64 and f32",
           silent == 0 ? "" : text(" (but for ", silent, " that f32 cannot detect)"));
  if (looked > 0)
    out += text(", and the gradients of ", looked < count ? text(looked, " architectures, each") : "each architecture",
                " alone are exact to rounding: errors in eps of ", errors);
  if (!unseen.empty()) out += text("; not looked at at single points: ", unseen);
  if (!outside.empty())
    out += ". The negative controls and the detectable sizes are measured on this library's own architectures";
  out += text(". Detectable: in ", kNegativeSteps, " steps of training, in f64 ", detectable_text_of(r, DType::f64),
              ", in f32 ", detectable_text_of(r, DType::f32));
  if (looked > 0) out += text("; at points, the gradient of any one tensor times 1 + x from x = ", seen, " on");
  return out + ".";
}

reports::TextTable trajectory_table(const CertificateResult& r) {
  reports::TextTable table{
      .heading = "Trajectories",
      .columns = {"architecture", "dtype", "worst form", "loss / control", "gradient / control", "weights / control",
                  "margin", "verdict"},
      .caption = text("Largest deviation from Pre-LN over all steps, for the form with the largest share of its bound, "
                      "and the largest of ",
                      r.options.controls, " controls moved by one ulp. f64: ", r.options.steps_in(DType::f64),
                      " steps, f32: ", r.options.steps_in(DType::f32),
                      ". AdamW at a constant rate of 1e-3. The percentage is the largest share of the bound; with a "
                      "single control, the least favourable one, it would be ",
                      printed("%.0f %%. ", std::ceil(100 * most_alone(r))),
                      "Margin: a third of a negative control's deviation (in f64 at most 1e-5), divided by the bound "
                      "at the last step; below 1 the horizon is before the end of the run.")};
  for (const Trajectory* at : r.all_trajectories()) {
    const Trajectory& t = *at;
    if (t.runs.empty()) continue;
    const RunResult& w = t.runs[t.worst];
    table.rows.push_back(
        row_of({{text(name_of(t.architecture), ": ", *t.regime ? t.regime : description(t.architecture))},
                {name_of(t.dtype)},
                {short_name(w.form)}},
               w, {reports::number_cell(t.margin), trajectory_cell(t)}));
  }
  return table;
}

reports::TextTable negative_table(const CertificateResult& r) {
  reports::TextTable table{.heading = "Negative controls",
                           .columns = {"mistake", "on", "dtype", "loss / control", "gradient / control",
                                       "weights / control", "times the bound", "verdict"},
                           .caption = text("Largest deviations over ", kNegativeSteps,
                                           " steps. A control that starts as the same function must exceed ",
                                           scientific(separation(DType::f64)), " times the controls in f64, ",
                                           scientific(separation(DType::f32)),
                                           " times in f32, and 1e-5, in each of the three; the others ", kLeastExcess,
                                           " times the bound. In f32 a control need not be detected if its deviation "
                                           "in f64 is below twice the f32 limit.")};
  for (const NegativeControlResult& n : r.negatives)
    table.rows.push_back(row_of({{n.control.name}, {n.control.architecture}, {name_of(n.dtype)}}, n.run,
                                {reports::number_cell(n.excess), negative_cell(n)}));
  return table;
}

reports::TextTable detectable_table(const CertificateResult& r) {
  reports::TextTable table{
      .heading = "Detectable mistakes",
      .columns = {"smallest mistake that training detects", "dtype"},
      .caption = text("The smallest x, in steps of 4, such that rms_norm with the mistake leaves the bound within ",
                      kNegativeSteps, " steps.")};
  for (const Architecture& a : r.options.resolved) table.columns.push_back(a.name);
  for (DType dtype : kTrained)
    for (NegativeControl mistake : kSizedMistakes) {
      std::vector<reports::TextCell> row = {{description(mistake)}, {name_of(dtype)}};
      for (const SmallestDetectable& found : r.detectable)
        if (found.mistake == mistake && found.dtype == dtype)
          row.push_back({std::isnan(found.smallest) ? "not detected" : scientific(found.smallest), reports::Tone::plain,
                         found.smallest});
      table.rows.push_back(row);
    }
  return table;
}

reports::TextTable error_table(const CertificateResult& r) {
  reports::TextTable table{
      .heading = "Errors at random points",
      .columns = {"in eps of the dtype", "points", "Pre-LN", "rms", "crms", "isometric", "plain RMSNorm",
                  "maps in bf16 / in f32", "median", "largest", "scale", "a factor shows from"},
      .caption =
          text("First columns, not part of the verdict: geometric means over points and architectures of the largest "
               "error against Pre-LN in f64, and in brackets the predicted rounding error. Each architecture and form "
               "is judged alone, tensor by tensor, as a multiple of the prediction: the median over points (at most ",
               kMedianLimit, ", plain RMSNorm more), the largest (at most ", kLargestLimit,
               ") and the mean error of its scale (at most ", kScaleLimit,
               "); the table shows the largest. Last column: the smallest x such that a gradient times 1 + x is "
               "rejected, for the most sensitive tensor / for every tensor. Points drawn again because a ReLU's input "
               "was within rounding of 0: ",
               redrawn_text(r), ".")};
  const auto add = [&](const char* what, const DTypeErrors& d, int64_t points, bool values) {
    const reports::Tone tone = d.as_expected ? reports::Tone::good : reports::Tone::bad;
    const auto with = [&](double measured, double predicted) {
      return reports::TextCell{text(eps_text(measured), " (", eps_text(predicted), ")"), {}, measured, predicted};
    };
    std::vector<reports::TextCell> row = {{text(what, " in ", name_of(d.dtype))}, reports::count_cell(points)};
    for (size_t f = 0; f < kPointFormCount; ++f) row.push_back(with(d.forms[f], d.predicted[f]));
    row.push_back(values ? reports::TextCell{} : eps_cell(d.plain));
    row.push_back(
        std::isnan(d.rounded)
            ? reports::TextCell{}
            : reports::TextCell{text(eps_text(d.rounded), " / ", eps_text(d.unrounded)), {}, d.rounded, d.unrounded});
    for (const Extreme* ratio : {&d.median, &d.largest, &d.scale})
      row.push_back(reports::printed_cell("%.2f", ratio->value, tone));
    row.push_back(reports::beside_cell(d.least_seen, d.always_seen));
    table.rows.push_back(row);
  };
  const int64_t points = r.options.points, looked_at = std::ssize(r.options.looked_at());
  for (const DTypeErrors& d : r.gradient_errors) add("gradients", d, points * looked_at, false);
  for (const DTypeErrors& d : r.gradient_errors) {
    if (std::isnan(d.kept[0])) continue;
    table.rows.push_back({{text("gradients in ", name_of(d.dtype), ", activations kept in bf16 (eps of bf16)")},
                          reports::count_cell(points * looked_at)});
    for (double form : d.kept) table.rows.back().push_back(eps_cell(form));
    table.rows.back().push_back(eps_cell(d.kept_plain));
    table.rows.back().resize(table.columns.size());
  }
  for (const DTypeErrors& d : r.width2_errors) add("width 2, values only,", d, points, true);
  return table;
}

// Every run of every training, including negative controls, and the reason for its verdict.
reports::TextTable run_table(const CertificateResult& r) {
  reports::TextTable table{.heading = "Every run",
                           .columns = {"training", "dtype", "form", "horizon", "loss / control", "gradient / control",
                                       "weights / control", "expected", "observed", "reason"},
                           .detail = true};
  const auto add = [&](const std::string& what, DType dtype, const RunResult& run, int horizon) {
    table.rows.push_back(row_of({{what}, {name_of(dtype)}, {run_name(run)}, reports::count_cell(horizon)}, run,
                                {{name_of(run.expected)}, {name_of(run.verdict)}, {run.reason}}));
  };
  for (const Trajectory* t : r.all_trajectories())
    for (const RunResult& run : t->runs) add(name_of(*t), t->dtype, run, t->horizon.steps);
  for (const NegativeControlResult& n : r.negatives)
    add(text(n.control.name, " (", n.control.architecture, ")"), n.dtype, n.run, n.run.horizon.steps);
  return table;
}

// The results of each architecture and form at random points.
reports::TextTable point_table(const CertificateResult& r) {
  reports::TextTable table{.heading = "Every architecture at random points",
                           .columns = {"architecture", "dtype", "form", "median", "median of", "largest", "largest of",
                                       "scale", "scale of", "a factor shows from", "for every tensor from", "reason"},
                           .detail = true};
  for (size_t i = 0; i < r.gradients.size(); ++i)
    for (size_t f = 0; f < kPointFormCount; ++f) {
      const PointErrors& e = r.gradients[i];
      const PointVerdict& v = r.gradient_verdicts[i].forms[f];
      Cells& row = table.rows.emplace_back(Cells{{e.architecture.name}, {name_of(e.dtype)}, {name_of_form(f)}});
      for (const Extreme* most : {&v.median, &v.largest, &v.scale})
        row.push_back(reports::number_cell(most->value)), row.push_back({most->of});
      row.insert(row.end(), {reports::number_cell(v.least_seen), reports::number_cell(v.always_seen), {v.reason}});
    }
  return table;
}

std::vector<std::string> method(const CertificateResult& r) {
  return {
      text("The batches are made from the seed: random images or ids with random labels; no file is read. Reference, "
           "controls and forms start from the same weights, which have a mean, and see the same batches. Let D_c(t) be "
           "the largest deviation up to step t of any of ",
           r.options.controls,
           " copies of Pre-LN moved by one ulp. A form is the same when D(t) <= 30 D_c(t) + 64 eps at every step, for "
           "loss, gradients and weights each."),
      text("Gradients: at ", r.options.points,
           " points per architecture and dtype every weight is drawn again and rounded to the dtype. The reference is "
           "Pre-LN in f64. Pre-LN's own error is measured on the same model with the coordinates of its stream and the "
           "examples of the batch in reverse order, which changes only rounding. Each error is divided by the "
           "predicted rounding error of the tensor at the point: a second implementation of the model, in f64, adds an "
           "independent error at every rounding of the form, and is computed four times. Points with a ReLU input "
           "within rounding of 0 are drawn again. Weights are mapped in f32 (f64 in f64) and rounded once. A stream of "
           "width 2 is degenerate: a normalised row is a sign, and its gradient almost 0; its values alone are "
           "compared.")};
}

struct Certificate {
  const CertificateResult& result;
  const reports::Document& document;
};

const reports::Schema<Certificate>& certificate_schema() {
  static const reports::Schema<Certificate> schema{
      "certificate", "What `isonorm prove --certificate` found.",
      reports::Fields<Certificate>()
          .add(
              "verdict", [](const Certificate& c) { return name_of(c.result.verdict); },
              "`equivalent`, `different` or `undecided`, over all trainings and points")
          .add(
              "sentence", [](const Certificate& c) { return c.document.sentence; }, "why, with the numbers that decide")
          .add(
              "architectures",
              [](const Certificate& c) {
                std::vector<std::string> names;
                for (const Architecture& a : c.result.options.architectures) names.push_back(a.name);
                return names;
              },
              "names of the models")
          .add(
              "steps", [](const Certificate& c) { return c.result.options.steps; }, "of a training in f64")
          .add(
              "tables", [](const Certificate& c) { return c.document.tables; },
              "claims, errors, trajectories, negative controls, resolutions, runs and points",
              reports::table_fields())};
  return schema;
}

}  // namespace

std::string short_name(const std::string& form) { return row_of(streams::form_named(form)).css; }

std::string horizons_text(const CertificateResult& r) {
  std::string ended;
  for (const Trajectory* at : r.all_trajectories())
    if (const Trajectory& t = *at; !t.horizon.ended_by.empty())
      ended += text(ended.empty() ? "" : ", ", name_of(t), " in ", name_of(t.dtype), " (", t.horizon.steps, " of ",
                    t.steps, ")");
  if (!ended.empty()) return text("the horizon lies before the end of ", ended);
  return "every horizon is the end of its run";
}

std::string eps_text(double errors) {
  return std::isnan(errors) ? "" : printed(errors < 1000 ? "%.1f" : "%.1e", errors);
}

const reports::Description& certificate_description() { return certificate_schema(); }

reports::Document document_of(const CertificateResult& r) {
  reports::Document d{.title = "A certificate: one Transformer in several coordinates",
                      .about = text(r.options.architectures.size(),
                                    " small architectures as Pre-LN, Pre-RMSNorm and Pre-CRMSNorm, trained side by "
                                    "side in f64 and f32 and compared point by point in f64, f32 and bf16."),
                      .tone = tone_of(r.verdict),
                      .verdict = heading_of(r.verdict),
                      .sentence = reason(r)};
  if (r.interrupted) return d;  // some parts are missing
  d.tables = {claim_table(r),      error_table(r), trajectory_table(r), negative_table(r),
              detectable_table(r), run_table(r),   point_table(r)};
  d.figures = certificate_figures(r);
  d.method = method(r);
  d.environment = environment_of(r.manifest, r.seconds);
  d.result = certificate_schema()({r, d});
  return d;
}

}  // namespace isonorm::equivalence
