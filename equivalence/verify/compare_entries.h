// Are two checkpoints one function, entry by entry? Both are brought into the form of canonical.h, and what may differ
// is what rounding to the dtypes of the files explains, a bound that every honest conversion keeps.
#pragma once

#include <optional>

#include "equivalence/convert/canonical.h"
#include "equivalence/coordinates/pairs.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

struct EntryComparison {
  // What explains the difference: nothing is left to explain; B is A rounded once, or A is B; both are something
  // rounded once; or B (A) is A (B) through a form between them, rounded there too.
  enum class Relation { identical, second_rounded, first_rounded, both_rounded, through_a_form, none };
  Relation relation = Relation::none;
  streams::Form between = streams::Form::none;  // of through_a_form
  bool finite = true;                           // false: one of them holds NaN or infinity, and nothing is the same
  bool comparable = true;                       // false: their tensors are not those of one model
  std::string reason;                           // one sentence, without a full stop
  std::optional<EntryPlace> largest;            // what differs most beyond rounding, in canonical coordinates
  double share = 0;                             // the largest part of its bound that an entry takes
  bool blind = false;                           // entries that the function does not see differ beyond rounding

  bool same() const { return relation != Relation::none; }
};

// Every entry of every tensor of A and B. With e the bound on one rounding of the stored values, carried to canonical
// coordinates, an entry may differ by e_B (A counts as exact), by e_A, or by e_A + e_B, all entries by the same rule.
// Where none holds, A is converted to each form with the dtypes that it has, and what that gives counts as exact, but
// that one value of a slice may have been rounded the other way; then B. The f64 arithmetic of conversion and
// comparison counts as 2 sqrt(d) roundings of the largest sum of terms in the slice, of both: the error of a sum of d
// terms is above lambda sqrt(d) roundings with a probability of at most 2 exp(-lambda^2 / 2) (Higham & Mary, 2019); it
// matters in f64 files alone. Tensors that do not touch the stream and eps are compared to the last bit, the finer
// dtype rounded to the coarser. Where one of the two is not convertible, tensors are compared as they are stored, and their
// norms must be of one kind.
// Throws where a state does not fit its layout.
EntryComparison compare_entries(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                const streams::Placement& layout_b);

// The same of two states that are finite and convertible, or of pieces of such states (pieces.h), without the forms
// that might lie between them: what a conversion is held to.
EntryComparison compare_convertible(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                    const streams::Placement& layout_b);

}  // namespace isonorm::equivalence
