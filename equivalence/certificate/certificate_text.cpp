#include "equivalence/certificate/certificate_text.h"

#include <algorithm>
#include <cmath>

#include "equivalence/criterion.h"
#include "equivalence/printed.h"
#include "equivalence/summary.h"

namespace isonorm::equivalence {
namespace {

TextCell verdict_cell(Verdict observed, bool good) { return {name_of(observed), good ? Tone::good : Tone::bad}; }

TextCell beside(double deviation, const std::vector<double>& control) {
  return {text(scientific(deviation), " / ", control.empty() ? "-" : scientific(control.back())), Tone::plain,
          deviation};
}

std::string eps_text(double errors) {
  return std::isnan(errors) ? "" : printed(errors < 1000 ? "%.1f" : "%.1e", errors);
}

TextCell eps_cell(double errors, Tone tone = Tone::plain) { return {eps_text(errors), tone, errors}; }

std::string short_name(const std::string& form) {
  return form == "rms_norm" ? "rms" : form == "crms_norm" ? "crms" : "isometric";
}

size_t largest_form(const DTypeErrors& d) { return std::max_element(d.forms, std::end(d.forms)) - d.forms; }

// Why a negative control does not do.
std::string objection(const NegativeResult& n) { return text(n.control.name, " (", n.run.reason, ")"); }

const NegativeResult* weakest(const CertificateResult& r) {
  const auto at = std::min_element(r.negatives.begin(), r.negatives.end(),
                                   [](const auto& a, const auto& b) { return a.excess < b.excess; });
  return at == r.negatives.end() ? nullptr : &*at;
}

const Trajectory* strongest(const CertificateResult& r, DType dtype) {
  const Trajectory* found = nullptr;
  for (const Trajectory& t : r.trajectories)
    if (t.dtype == dtype && (!found || !(t.share <= found->share))) found = &t;
  return found;
}

double most_alone(const CertificateResult& r) {
  double most = 0;
  for (const Trajectory& t : r.trajectories) most = larger(most, t.share_alone);
  return most;
}

// The first thing that is not as expected; empty where there is none.
std::string first_objection(const CertificateResult& r) {
  for (const Trajectory& t : r.trajectories)
    for (const RunResult& run : t.runs)
      if (!run.as_expected)
        return text(t.architecture.name, " in ", name_of(t.dtype), ": ", run.form, " came out ", name_of(run.observed),
                    " (", run.reason, ")");
  for (const NegativeResult& n : r.negatives)
    if (!n.as_expected) return text("negative control: ", objection(n));
  const auto errors = [](const char* what, const DTypeErrors& d) {
    const size_t f = largest_form(d);
    return text(what, " in ", name_of(d.dtype), ": ", nn::name_of(kCertifiedForms[f]), " ", eps_text(d.forms[f]),
                " eps, Pre-LN itself ", eps_text(d.own), ", plain RMSNorm ",
                std::isnan(d.plain) ? "-" : eps_text(d.plain));
  };
  for (const DTypeErrors& d : r.gradient_errors)
    if (!d.within || !d.flat || !d.plain_differs) return errors("gradients", d);
  for (const DTypeErrors& d : r.width2_errors)
    if (!d.within) return errors("values of width 2", d);
  return r.trajectories.empty() || r.negatives.empty() ? "there was nothing to compare" : "";
}

}  // namespace

std::string certificate_sentence(const CertificateResult& r) {
  if (r.interrupted) return "Interrupted: nothing is concluded.";
  const std::string objected = first_objection(r);
  if (!objected.empty()) return text("Not certified: ", objected, ".");
  std::string errors;
  for (const DTypeErrors& d : r.gradient_errors)
    errors += text(errors.empty() ? "" : ", ", eps_text(d.forms[largest_form(d)]), " (Pre-LN itself ", eps_text(d.own),
                   ") in ", name_of(d.dtype));
  const size_t count = r.options.architectures.size();
  return text("Certified: ", count, count == 1 ? " architecture trains" : " architectures train",
              " in every form as Pre-LN does (f64 ", r.options.steps_in(DType::f64), " steps, f32 ",
              r.options.steps_in(DType::f32), "), ", r.negatives.size(),
              " negative controls came out different, and gradients are exact to rounding: errors in eps of ", errors,
              ".");
}

TextTable trajectory_table(const CertificateResult& r) {
  TextTable table{
      .heading = "Trajectories",
      .columns = {"architecture", "dtype", "worst form", "loss / control", "gradient / control", "weights / control",
                  "verdict"},
      .caption = text("Largest deviation from Pre-LN over all steps of the form that used most of its bound, "
                      "and the largest of ",
                      r.options.controls, " controls moved by one ulp. f64: ", r.options.steps_in(DType::f64),
                      " steps, f32: ", r.options.steps_in(DType::f32),
                      ". AdamW at a constant rate of 1e-3. The percentage is that of the bound that was used; with "
                      "one control alone, the least fortunate of them, a form would use ",
                      printed("%.0f %%.", std::ceil(100 * most_alone(r))))};
  for (const Trajectory& t : r.trajectories) {
    if (t.runs.empty()) continue;
    const RunResult& w = t.runs[t.worst];
    table.rows.push_back({{text(t.architecture.name, ": ", description(t.architecture))},
                          {name_of(t.dtype)},
                          {short_name(w.form)},
                          beside(w.loss_deviation, w.control.loss),
                          beside(w.gradient_deviation, w.control.gradient),
                          beside(w.weight_deviation, w.control.weight),
                          {text(t.as_expected ? "same" : "different", printed(", %.0f %%", std::ceil(100 * t.share))),
                           t.as_expected ? Tone::good : Tone::bad, t.share}});
  }
  return table;
}

TextTable negative_table(const CertificateResult& r) {
  TextTable table{.heading = "Negative controls",
                  .columns = {"what is wrong", "on", "loss / control", "gradient / control", "weights / control",
                              "times the bound", "verdict"},
                  .caption = text("Largest deviations over ", kNegativeSteps,
                                  " steps in f64. What starts as the same "
                                  "function must exceed ",
                                  scientific(separation(DType::f64)),
                                  " times the controls and 1e-5 in each of the three; the others ", kLeastExcess,
                                  " times the bound.")};
  for (const NegativeResult& n : r.negatives)
    table.rows.push_back({{n.control.name},
                          {n.control.architecture},
                          beside(n.run.loss_deviation, n.run.control.loss),
                          beside(n.run.gradient_deviation, n.run.control.gradient),
                          beside(n.run.weight_deviation, n.run.control.weight),
                          {scientific(n.excess), Tone::plain, n.excess},
                          verdict_cell(n.run.observed, n.as_expected)});
  return table;
}

TextTable error_table(const CertificateResult& r) {
  TextTable table{.heading = "Errors at random points",
                  .columns = {"in eps of the dtype", "points", "Pre-LN", "rms", "crms", "isometric", "limit",
                              "plain RMSNorm", "maps in bf16 / in f32"},
                  .caption =
                      "Geometric means over points and architectures of the largest error against Pre-LN in f64. "
                      "Pre-LN's own error: summed in another order. The limit is twice that. Plain RMSNorm has "
                      "to exceed it."};
  const auto add = [&](const char* what, const DTypeErrors& d, size_t points, bool values) {
    std::vector<TextCell> row = {{text(what, " in ", name_of(d.dtype))}, {text(points)}, eps_cell(d.own)};
    for (double form : d.forms) row.push_back(eps_cell(form, form <= d.limit() ? Tone::good : Tone::bad));
    row.push_back(eps_cell(d.limit()));
    row.push_back(values ? TextCell{} : eps_cell(d.plain, d.plain_differs ? Tone::good : Tone::bad));
    row.push_back(std::isnan(d.rounded) ? TextCell{}
                                        : TextCell{text(eps_text(d.rounded), " / ", eps_text(d.unrounded)), Tone::plain,
                                                   d.rounded / d.unrounded});
    table.rows.push_back(row);
  };
  const auto points = static_cast<size_t>(r.options.points);
  for (const DTypeErrors& d : r.gradient_errors) add("gradients", d, points * r.options.architectures.size(), false);
  for (const DTypeErrors& d : r.width2_errors) add("width 2, values only,", d, points, true);
  return table;
}

TextTable claim_table(const CertificateResult& r) {
  TextTable table{.heading = "What is claimed, and what would have refuted it",
                  .columns = {"claim", "measured", "refuted by", "holds"}};
  const auto add = [&](const std::string& claim, const std::string& measured, const std::string& refuted, bool holds) {
    table.rows.push_back({{claim}, {measured}, {refuted}, {holds ? "yes" : "no", holds ? Tone::good : Tone::bad}});
  };
  const NegativeResult* weak = weakest(r);
  for (DType dtype : {DType::f64, DType::f32})
    if (const Trajectory* t = strongest(r, dtype))
      add(text("every form trains as Pre-LN does in ", name_of(dtype)),
          printed("at most %.0f %% of the bound (%s, %s)", std::ceil(100 * t->share), t->architecture.name,
                  t->runs[t->worst].form.c_str()),
          text("more than 100 %", dtype == DType::f64 && weak ? text(": the weakest negative control reaches ",
                                                                     scientific(weak->excess), " times the bound")
                                                              : std::string()),
          t->share <= 1);
  for (const NegativeResult& n : r.negatives)
    add(n.control.claim, text(n.control.name, ": ", scientific(n.excess), " times the bound"),
        n.control.same_start ? text("less than ", scientific(separation(DType::f64)), " times the controls, or 1e-5")
                             : text("less than ", kLeastExcess, " times the bound"),
        n.as_expected);
  for (const DTypeErrors& d : r.gradient_errors) {
    const size_t f = largest_form(d);
    add(text("gradients are exact to rounding in ", name_of(d.dtype)),
        text(eps_text(d.forms[f]), " eps (", nn::name_of(kCertifiedForms[f]), "), Pre-LN itself ", eps_text(d.own)),
        text("more than ", eps_text(d.limit()), " eps",
             std::isnan(d.plain) ? std::string() : text(": plain RMSNorm has ", eps_text(d.plain))),
        d.within && d.plain_differs);
  }
  if (!r.gradient_errors.empty()) {
    const DTypeErrors &first = r.gradient_errors.front(), &last = r.gradient_errors.back();
    const size_t f = largest_form(last);
    const bool flat =
        std::all_of(r.gradient_errors.begin(), r.gradient_errors.end(), [](const auto& d) { return d.flat; });
    std::string measured;
    for (const DTypeErrors& d : r.gradient_errors)
      measured += text(measured.empty() ? "" : ", ", eps_text(d.forms[f]), " in ", name_of(d.dtype));
    add("the error in eps does not grow from f64 to bf16", text(measured, " (", nn::name_of(kCertifiedForms[f]), ")"),
        text("more than ", eps_text(2 * first.forms[f]), ", twice that in f64"), flat);
    if (!std::isnan(last.rounded))
      add("maps belong in f32, rounded once (no part of the verdict)",
          text(eps_text(last.unrounded), " eps; computed in bf16 ", eps_text(last.rounded)),
          text("no more than ", eps_text(last.unrounded), " with maps in bf16"), last.rounded > last.unrounded);
  }
  for (const DTypeErrors& d : r.width2_errors) {
    const size_t f = largest_form(d);
    add(text("the degenerate width 2 has Pre-LN's values in ", name_of(d.dtype)),
        text(eps_text(d.forms[f]), " eps (", nn::name_of(kCertifiedForms[f]), "), Pre-LN itself ", eps_text(d.own)),
        text("more than ", eps_text(d.limit()), " eps"), d.within);
  }
  return table;
}

std::string certificate_text(const CertificateResult& r, bool color) {
  std::string out;
  for (const TextTable& t : {trajectory_table(r), negative_table(r), error_table(r)})
    out += text(t.heading, "\n\n", to_text(t, color), t.caption, "\n\n");
  return out;
}

}  // namespace isonorm::equivalence
