// Where a long work is, for a terminal.
#pragma once

#include <string>

#include "equivalence/lockstep/result.h"

namespace isonorm::tools {

// "training 37/200  loss 1.234  deviation 2.1e-15 (controls 1.0e-15)  1:23 left  1.90 steps/s": the largest deviation
// so far. rate: steps a second of this phase, 0 where not known yet.
std::string progress_text(const equivalence::StepInfo& info, double rate);

// "1:23", "2:03:04".
std::string duration_text(double seconds);

}  // namespace isonorm::tools
