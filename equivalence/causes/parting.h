// Internal: where two forwards, or two backwards, part. The ops of both models are recorded, and their results are compared.
#pragma once

#include <string>

#include "equivalence/causes/trial.h"

namespace isonorm::equivalence {

struct Parting {
  std::string sentence;  // empty if nothing shows a place, or if no gradients are left to spend
  std::string path;      // of the module of A whose op is the first that differs, in the forward
};

// A result of A is found in B if some op
// of B has one with the same entries in any order, within what an ulp of A's weights does to it. So the two may compute the
// same by other ops and in other layouts.
//
// If the loss differs: the last results of A that are found in B, or from which one that is found is computed, and the first
// op behind them of which that is not true. If the loss agrees: the last result found in B whose gradient is another one; the
// gradients of what is computed behind it agree.
Parting where_they_part(Trial& trial);

}  // namespace isonorm::equivalence
