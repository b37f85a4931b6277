// A proof as JSON: one object for the whole result, one line per step for a log.
#pragma once

#include <string>

#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// {"verdict" ("equivalent", "not equivalent" or "undecided"), "sentence", "horizon", "manifest", "control", "controls",
// "reference", "runs", "test_count", "seconds"}: indented by two, with a newline at the end. `horizon` is {"steps",
// "of", "ended_by", "term", "limit", "resolution"} (result.h), `control` has the largest deviations of all `controls`,
// `runs` is what is judged. A number that is not finite, and what did not run, is null.
std::string to_json(const ProofResult& proof);

// A step's line of a log, which begins with log_manifest() (training_log.h): phase, step, lr, loss of the reference,
// and of every control and run of this phase its loss and deviations at this step.
std::string log_step(const StepInfo& info);
// Last line: {"verdict", "sentence", "horizon", "seconds"}.
std::string log_verdict(const ProofResult& proof);

}  // namespace isonorm::equivalence
