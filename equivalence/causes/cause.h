// Internal: why two models differ. Only causes that were tested on these two models are named.
#pragma once

#include "equivalence/causes/trial.h"
#include "equivalence/judge/judgement.h"

namespace isonorm::equivalence {

struct Explained {
  std::string place = {};  // the point at which the forwards, or backwards, part (parting.h); empty if not found
  std::string cause = {};  // empty if no tested cause removes the difference
  std::vector<std::string> tried = {};  // the causes that were tested
};

inline void take_cause(Judgement& judgement, const Explained& explained) {
  judgement.place = explained.place, judgement.likely_cause = explained.cause, judgement.tried = explained.tried;
  judgement.cause_tested = true;
}

// Tests causes at the point at which the models of the trial differ. A cause is named if the difference vanishes under
// it, in the loss and in every gradient, within the comparison's bounds; if the two, run again without it, differ
// again; and if the difference vanishes under it once more. The causes:
//   a model that does not repeat itself; a factor that all gradients share; another eps of a norm; a part that acts in
//   training only; a writer of B's stream that is not mapped (declared otherwise, forgotten, read as stored, stored
//   mapped); a stream of A whose mean its loss sees, or that a vector scales; and, if the forwards part in a norm of A,
//   another eps, divisor, kind or gain.
Explained explain_difference(Trial& trial);

}  // namespace isonorm::equivalence
