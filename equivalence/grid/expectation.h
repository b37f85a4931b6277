// What theory says about a cell of the grid: whether a way to store and update weights follows Pre-LN under an
// optimizer, derived from what the way is (Variant) and from what the optimizer's update was measured to depend on
// (Predicates). The proofs are in docs/normalization.md, "Fifteen ways to store one model".
#pragma once

#include <string>

#include "equivalence/coordinates/variant.h"
#include "equivalence/grid/predicates.h"

namespace isonorm::equivalence {

// same, different: from Pre-LN's trajectory. undefined: there is no such model, or what the optimizer reads is not
// there. undecided is only ever observed.
enum class Expectation { same, different, undefined, undecided };
const char* name_of(Expectation expectation);  // "same", "different", "n/a", "undecided"

// What of the architecture decides which directions of the weights the function cannot see.
struct Visible {
  bool affine = false;  // norms have a learned gain and bias: readers' means are seen (F4 fails)
  bool tied = false;    // the token table is the head too
};

struct Derived {
  Expectation value;
  std::string because;  // a sentence: the property that decided, or what is missing
};

Derived expectation(const Variant& variant, const Predicates& update, const Visible& visible = {});

}  // namespace isonorm::equivalence
