// What theory says about a cell of the grid: whether a way to store and update weights follows Pre-LN under an
// optimizer, derived from what the way is (Variant), from what the optimizer's update was measured to depend on
// (Predicates) and from what the model's function was measured to see of its weights (Visible). The proofs are in docs/normalization.md, "Fifteen ways to store one model".
#pragma once

#include <string>

#include "equivalence/coordinates/variant.h"
#include "equivalence/grid/predicates.h"
#include "equivalence/grid/visible.h"

namespace isonorm::equivalence {

// same, different: from Pre-LN's trajectory. undefined: there is no such model, or what the optimizer reads is not
// there. undecided is only ever observed.
enum class Expectation { same, different, undefined, undecided };
const char* name_of(Expectation expectation);  // "same", "different", "n/a", "undecided"

struct Derived {
  Expectation value;
  std::string because;     // a sentence: the property that decided, or what is missing
  bool same_start = true;  // different: the training leaves Pre-LN's path, or is one of another function from the start
};

Derived expectation(const Variant& variant, const Predicates& update, const Visible& visible = {});

}  // namespace isonorm::equivalence
