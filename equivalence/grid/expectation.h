// The theory of a cell of the grid: does a way to store and update weights follow Pre-LN under an optimizer? Derived
// from three things: the way's description (Variant), measured properties of the optimizer's update (Predicates), and
// the measured blindness of the model's function (Visible). The proofs are in docs/normalization.md, "Fifteen ways to
// store one model".
#pragma once

#include <optional>
#include <string>

#include "equivalence/coordinates/variant.h"
#include "equivalence/grid/predicates.h"
#include "equivalence/grid/visible.h"
#include "equivalence/judge/judgement.h"

namespace isonorm::equivalence {

// equivalent, different: compared with Pre-LN's trajectory. None: there is no such model, or the optimizer would need a
// value that is not stored. undecided occurs only as an observation.
using MaybeVerdict = std::optional<Verdict>;
inline const char* name_of(MaybeVerdict verdict) { return verdict ? name_of(*verdict) : "n/a"; }

struct Derived {
  MaybeVerdict value;
  std::string because;     // a sentence: the property that decided, or the reason why there is no verdict
  bool same_start = true;  // if different: false if the model is another function from the start
};

Derived expectation(const Variant& variant, const Predicates& update, const Visible& visible = {});

}  // namespace isonorm::equivalence
