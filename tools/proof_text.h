// A proof in a terminal: where it is, and how it ended.
#pragma once

#include <string>

#include "equivalence/lockstep/result.h"

namespace isonorm::tools {

// "training 37/200  loss 1.234  deviation 2.1e-15 (controls 1.0e-15)  1:23 left  1.90 steps/s": the largest deviation
// so far. rate: steps a second of this phase, 0 where not known yet.
std::string progress_text(const equivalence::StepInfo& info, double rate);

// The closing sentence of a finished proof, in lines of at most `width` (0: one line), coloured where `color`.
std::string proof_closing(const equivalence::ProofResult& proof, bool color, size_t width);

// "1:23", "2:03:04".
std::string duration_text(double seconds);

}  // namespace isonorm::tools
