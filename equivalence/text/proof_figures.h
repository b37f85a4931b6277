// The pictures of a proof: what the paper's figures 6 and 7 show, and what they do not.
#pragma once

#include "equivalence/lockstep/result.h"
#include "reports/figure.h"

namespace isonorm::equivalence {

// The losses of all forms laid over each other, and those of the negative controls beside them.
reports::Figure loss_figure(const ProofResult& proof);

// Loss, gradient and weights: each run's deviation from the reference at every step, on one logarithmic axis with the
// area that the controls reach and the bound of the criterion.
reports::Figure deviation_figure(const ProofResult& proof);

}  // namespace isonorm::equivalence
