// What a proof says.
#pragma once

#include <string>

#include "equivalence/lockstep/result.h"
#include "reports/document.h"

namespace isonorm::equivalence {

// good: the same; bad: different.
reports::Tone tone_of(Verdict verdict);

// "rms_norm", "rms_norm projected_once", "rms_norm, gains frozen", "layer_norm + 1 ulp (seed 3)".
std::string run_name(const RunResult& run);

// Largest deviation of loss, gradient and weights, each beside the controls' where the run has some.
std::vector<reports::TextCell> deviation_cells(const RunResult& run);

// "Equivalent: ...", "Not equivalent: ..." or "Undecided: ...", with the figures, horizon and resolution, or the first
// run that was not as expected; a row per run; losses and deviations at every step.
reports::Document document_of(const ProofResult& proof);

// The log of a proof: JSON, a line per step, which begins with log_manifest() (training_log.h). A step's line: phase,
// step, lr, loss of the reference, and of every control and run of this phase its loss and deviations at this step.
std::string log_step(const StepInfo& info);
// Last line: {"verdict" ("Equivalent", ...), "sentence", "seconds"}.
std::string log_verdict(const ProofResult& proof);

}  // namespace isonorm::equivalence
