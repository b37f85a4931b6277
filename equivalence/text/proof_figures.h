// The figures of a proof: the comparisons of the paper's figures 6 and 7, and the deviations that they do not show.
#pragma once

#include "equivalence/lockstep/result.h"
#include "reports/figure.h"

namespace isonorm::equivalence {

// The forms' losses in one chart, and the negative controls' losses in another.
reports::Figure loss_figure(const ProofResult& proof);

// Loss, gradient and weights: each run's deviation from the reference at every step, on one logarithmic axis with the
// area that the controls reach and the bound of the criterion.
reports::Figure deviation_figure(const ProofResult& proof);

}  // namespace isonorm::equivalence
