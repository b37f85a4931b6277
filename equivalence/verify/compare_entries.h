// Are two checkpoints one function, entry by entry? Both are brought into the form of canonical.h, and what may differ
// is what rounding to the dtypes of the files explains, a bound that every honest conversion keeps.
#pragma once

#include <optional>

#include "equivalence/convert/pieces.h"
#include "equivalence/verify/compare_rows.h"

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

// A and B piece by piece: every entry of every tensor. With e the bound on one rounding of the stored values, carried to
// canonical coordinates, an entry may differ by e_B (A counts as exact), by e_A, or by e_A + e_B, all entries by the same
// rule. The f64 arithmetic of conversion and comparison counts as 2 sqrt(d) roundings of the largest sum of terms in the slice,
// of both: the error of a sum of d terms is above lambda sqrt(d) roundings with a probability of at most
// 2 exp(-lambda^2 / 2) (Higham & Mary, 2019); it matters in f64 files alone. Tensors that do not touch the stream and eps
// are compared to the last bit, the finer dtype rounded to the coarser. Where A's layout has a rotation, the coordinates are those
// of B.
class EntryCheck {
 public:
  // centred: both are convertible, which frees them of what their function does not see; else tensors are compared as stored.
  explicit EntryCheck(bool centred = true) : centred_(centred) {}

  // Two pieces that are finite and become one another. Throws where one does not fit its layout.
  void add(const Piece& a, const Piece& b);
  EntryComparison result() const;

  bool comparable() const { return result_.comparable; }
  // Whether B is A rounded once, but that one value of each slice of A may have been rounded the other way.
  bool through() const { return result_.comparable && rows_.shares.through <= 1; }
  double through_share() const { return rows_.shares.through; }
  // Whether rounding in a form between the two may explain what differs: at most (1 + ln d) half ulps of an entry (what
  // a row of Q sums to), d of the one that crms_norm does not store.
  bool may_have_come_through() const { return result_.comparable && rows_.shares.between <= 1; }

 private:
  class Comparer;

  bool centred_, rotated_ = false;
  EntryComparison result_{};  // what is found so far, but for what the shares say
  RowFindings rows_;
  bool identical_ = true;
};

}  // namespace isonorm::equivalence
