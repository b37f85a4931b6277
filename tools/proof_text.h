// A proof in a terminal: where it is, and its table.
#pragma once

#include <string>

#include "equivalence/result.h"

namespace isonorm::tools {

// "training 37/200  loss 1.234  deviation 2.1e-15 (controls 1.0e-15)  1:23 left  1.90 steps/s": the largest deviation
// so far. rate: steps a second of this phase, 0 where not known yet.
std::string progress_text(const equivalence::StepInfo& info, double rate);

// The table of a finished proof, its closing sentence and, where there is one, its warning; verdicts are coloured where
// `color`.
std::string proof_table(const equivalence::ProofResult& proof, bool color);
std::string proof_closing(const equivalence::ProofResult& proof, bool color);

// "1:23", "2:03:04".
std::string duration_text(double seconds);

}  // namespace isonorm::tools
