// The claims of a certificate, with the measured figures and the figures that would have refuted them.
#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "lab/certificate/certificate_text.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {
namespace {

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
