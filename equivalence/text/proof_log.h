// The log of a proof: JSON, a line per step.
#pragma once

#include <string>

#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// A step's line of a log, which begins with log_manifest() (training_log.h): phase, step, lr, loss of the reference,
// and of every control and run of this phase its loss and deviations at this step.
std::string log_step(const StepInfo& info);
// Last line: {"verdict" ("Equivalent", ...), "sentence", "seconds"}.
std::string log_verdict(const ProofResult& proof);

}  // namespace isonorm::equivalence
