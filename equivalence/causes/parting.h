// Internal: where two forwards, or two backwards, part. The ops of both models are recorded, and their results are
// compared.
#pragma once

#include <string>

#include "equivalence/causes/trial.h"

namespace isonorm::equivalence {

struct Parting {
  std::string sentence;  // empty if nothing shows a place, or if no gradients are left to spend
  std::string path;      // of the module of A whose op is the first that differs, in the forward
};

// A result of A is found in B if an op of B has a result with the same entries in any order, up to the change that an
// ulp of A's weights causes. The two models may therefore use other ops and other layouts.
//
// If the loss differs, names the last results of A that agree, and the first op after them whose result does not. A
// result agrees if it is found in B, or if a result that is found is computed from it. If the loss agrees, names the
// last result found in B whose gradient differs; the gradients of later results agree.
Parting where_they_part(Trial& trial);

}  // namespace isonorm::equivalence
