#include "equivalence/text/proof_report.h"

#include "core/printed.h"
#include "equivalence/lockstep/criterion.h"
#include "equivalence/text/proof_figures.h"
#include "equivalence/text/summary.h"
#include "reports/page.h"
#include "training/from_outside.h"
#include "training/model_row.h"
#include "training/records/manifest_html.h"

namespace isonorm::equivalence {
namespace {

std::string verdict(const ProofResult& proof) {
  const std::string sentence = summary_sentence(proof);
  const size_t colon = sentence.find(": ");  // the box has the word before it as its headline
  const std::string rest = colon == std::string::npos ? sentence : sentence.substr(colon + 2);
  const reports::Tone tone = proof.verdict == Verdict::same        ? reports::Tone::good
                             : proof.verdict == Verdict::different ? reports::Tone::bad
                                                                   : reports::Tone::plain;
  return verdict_box(tone, verdict_name(proof), rest);
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
      scientific(epsilon(proof.options.training.dtype)),
      ", as far as that bound lies below a third of what a wrong training reaches (the weaker of the negative "
      "controls) and below 1e-5 in f64, 1e-2 in f32: up to the horizon, step ",
      proof.horizon.steps, " here. Where the horizon is nearer than ", kNegativeSteps,
      " steps and the end of the run, it is <em>undecided</em>. A negative control must start as the same function and "
      "within ",
      kNegativeSteps, " steps exceed ", separation(proof.options.training.dtype),
      " D<sub>c</sub> and 1e-5 in each of the three.</p>\n<ul class=\"reasons\">\n");
  for (const RunResult& run : proof.runs)
    out += text("<li>", reports::escaped(run_name(run)), ": ", name_of(run.observed), " &ndash; ",
                reports::unbroken(run.reason), "</li>\n");
  return out + "</ul>\n";
}

}  // namespace

std::string report_html(const ProofResult& proof) {
  std::string out =
      text("<h1>One Transformer in several coordinates</h1>\n<p class=\"soft\">Pre-LN, Pre-RMSNorm and Pre-CRMSNorm ",
           reports::escaped(proof.options.training.model->noun), "s trained side by side, and compared step by step. ",
           name_of(proof.options.training.dtype), ", ", reports::escaped(rows_text(proof.options.training)), ", ",
           proof.options.training.step_count(), " steps.</p>\n");
  out += verdict(proof) + figure_html(loss_figure(proof)) + figure_html(deviation_figure(proof)) +
         to_html(summary_table(proof)) + criterion_text(proof) + reports::repeat_html(repeat_command(proof.manifest)) +
         environment_html(proof.manifest, proof.seconds);
  return reports::report_page(text("isonorm: ", verdict_name(proof)), out);
}

}  // namespace isonorm::equivalence
