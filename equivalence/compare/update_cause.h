// Why the updates of two models differ although their gradients agree: causes that were tested on the step.
#pragma once

#include "equivalence/compare/cause.h"
#include "equivalence/explain/models.h"

namespace isonorm::equivalence {

// A step of both models, tensor by tensor: of A in its coordinates, of B in its own.
struct SeenUpdate {
  std::vector<UpdateRows> a, b;
};

// A cause is named if it explains every tensor that differs, within rounding: another rate, decay or eps of the first step of Adam
// or AdamW, or of a step of SGD; a decay that is added to the gradient; or, if a map acts, that the optimizer does not commute
// with it: `make` then gives the two steps from the weights and gradients in either's coordinates.
// differing: names of A's parameters whose weights differ.
Explained explain_update(const Partners& partners, const SeenUpdate& seen, const std::vector<std::string>& differing,
                         const MakeOptimizer& make);

}  // namespace isonorm::equivalence
