// Internal: the sentences of a difference.
#pragma once

#include <span>
#include <string>

#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// "at point 1 the loss agrees, and 2 of 8 gradients do not: look at the backward". at: "at point 1"; counts: the loss first.
std::string where_to_look(const std::string& at, std::span<const CompareCount> counts);

// "gradient of w: 2.0e+00, the bound is 5.8e-13; w[3, 1] is 0.031, in the reference -0.012".
std::string row_of(const DifferingTensor& t);

}  // namespace isonorm::equivalence
