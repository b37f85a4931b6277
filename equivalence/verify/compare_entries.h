// Are two checkpoints one function, entry by entry? Both are brought to canonical form (canonical.h) and may differ by
// as much as rounding to the dtypes of the files explains. Every correct conversion keeps this bound.
#pragma once

#include <optional>

#include "equivalence/convert/pieces.h"
#include "equivalence/verify/compare_rows.h"

namespace isonorm::equivalence {

struct EntryComparison {
  // The explanation of the difference. identical: there is none. second_rounded: B is A rounded once. first_rounded: A
  // is B rounded once. both_rounded: both are rounded from the same values. through_a_form: one is the other, converted
  // to a form between them, rounded there, and rounded again.
  enum class Relation { identical, second_rounded, first_rounded, both_rounded, through_a_form, none };
  Relation relation = Relation::none;
  streams::Form between = streams::Form::none;  // if relation is through_a_form
  bool finite = true;                           // false: one has NaN or infinity, and nothing counts as the same
  bool comparable = true;                       // false: their tensors do not belong to one model
  std::string reason;                           // one sentence, without a full stop
  std::optional<EntryPlace> largest;            // the largest difference beyond rounding, in canonical coordinates
  double share = 0;                             // the largest share of its bound that an entry uses
  bool blind = false;                           // entries that the function does not see differ beyond rounding
  bool other_eps = false;                       // two norms have another eps

  bool equivalent() const { return relation != Relation::none; }
};

// Compares every entry of every tensor of A and B, piece by piece. Let e be the bound on one rounding of the stored
// values, carried to canonical coordinates. An entry may differ by e_B (A counts as exact), by e_A, or by e_A + e_B;
// the same rule has to explain all entries. The f64 arithmetic of conversion and comparison counts as 2 sqrt(d)
// roundings of the largest sum of terms in the slice, for each of the two: the error of a sum of d terms exceeds lambda
// sqrt(d) roundings with a probability of at most 2 exp(-lambda^2 / 2) (Higham & Mary, 2019). It matters only in f64
// files. Tensors that do not touch the stream, and eps, are compared to the last bit, after the finer dtype is rounded
// to the coarser. If A's plan has a rotation, B's coordinates are used.
class EntryCheck {
 public:
  // centred: both are convertible, so directions that their function does not see are removed; otherwise tensors are
  // compared as stored.
  explicit EntryCheck(bool centred = true) : centred_(centred) {}

  // Adds two corresponding pieces, which are finite. Throws if one does not fit its plan.
  void add(const Piece& a, const Piece& b);
  EntryComparison result() const;

  bool comparable() const { return result_.comparable; }
  // True if B is A rounded once, except that one value of each slice of A may have been rounded the other way.
  bool through() const { return result_.comparable && rows_.second_rounded_and_flipped <= 1; }
  double through_share() const { return rows_.second_rounded_and_flipped; }
  // True if rounding in a form between the two may explain the differences: at most 2 + ln d half ulps of an entry (a
  // row of Q sums to less than 1 + ln d). The entry that crms_norm does not store may differ by d half ulps.
  bool may_have_come_through() const { return result_.comparable && rows_.rounded_between <= 1; }

 private:
  class Comparer;

  bool centred_, rotated_ = false;
  EntryComparison result_{};  // the findings so far, without those that follow from the shares
  RowFindings rows_;
  bool identical_ = true;
};

}  // namespace isonorm::equivalence
