// A proof as one HTML file that needs nothing else: no scripts, no network; readable in light, in dark and on paper.
#pragma once

#include <string>

#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// The page: verdict, loss curves laid over each other, deviations per step against the controls, table, criterion,
// environment, and the command that repeats the proof.
std::string report_html(const ProofResult& proof);

}  // namespace isonorm::equivalence
