// The report, the figures and the log of a proof. The figures are the comparisons of the paper's figures 6 and 7, and
// the deviations that they do not show.
#pragma once

#include <string>

#include "equivalence/lockstep/prove.h"
#include "reports/figure.h"
#include "reports/result.h"

namespace isonorm::equivalence {

// "rms_norm", "rms_norm projected_once", "rms_norm, gains frozen", "layer_norm + 1 ulp (3)": control 3.
std::string run_name(const RunResult& run);

// Largest deviation of loss, gradient and weights, each with the controls' deviation if the run has controls.
std::vector<reports::TextCell> deviation_cells(const RunResult& run);

// "Equivalent. ...", "Different: ..." or "Undecided: ...", with the figures, the horizon and the detectable change, or
// with the first run that was not as expected. Then a row per run, and losses and deviations at every step.
reports::Document document_of(const ProofResult& proof);
// The sentence of the document, and its JSON.
std::string sentence_of(const ProofResult& proof);
const reports::Schema<ProofResult>& proof_schema();

// The losses of all forms in one chart, and the losses of the negative controls in another.
reports::Figure loss_figure(const ProofResult& proof);

// Loss, gradient and weights: each run's deviation from the reference at every step, on one logarithmic axis with the
// area that the controls reach and the bound of the criterion.
reports::Figure deviation_figure(const ProofResult& proof);

// The log of a proof: JSON, a line per step, after log_manifest() (training_log.h). The line of a step: phase, step,
// lr, the reference's loss, and the loss and deviations of every control and run of this phase.
std::string log_step(const StepInfo& info);
// Last line: {"verdict" ("Equivalent", ...), "sentence", "seconds"}.
std::string log_verdict(const ProofResult& proof);

}  // namespace isonorm::equivalence
