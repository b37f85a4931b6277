// A proof as JSON: one object for the whole result, one line per step for a log.
#pragma once

#include <string>

#include "equivalence/result.h"

namespace isonorm::equivalence {

// {"verdict", "sentence", "manifest", "control", "reference", "runs", "seconds"}: indented by two, with a newline at
// the end. A number that is not finite, and what did not run, is null.
std::string to_json(const ProofResult& proof);

// First line of a log, {"manifest": {...}}.
std::string log_manifest(const ProofResult& proof);
// A step's line: phase, step, lr, loss of the reference, and of every control and run of this phase its loss and
// deviations at this step.
std::string log_step(const StepInfo& info);
// Last line: {"verdict": ..., "sentence": ...}.
std::string log_verdict(const ProofResult& proof);

}  // namespace isonorm::equivalence
