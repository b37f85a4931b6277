// Compares rows of two checkpoints in canonical coordinates, entry by entry: does rounding explain the difference, and
// which rule holds?
#pragma once

#include <optional>
#include <string>

#include "equivalence/judge/pairs.h"
#include "equivalence/verify/canonical.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The findings about some rows. add() joins the findings about others.
struct RowFindings {
  // For each explanation the largest share of its bound that an entry uses: at most 1 if it explains every entry. NaN
  // counts as infinity.
  double second_rounded = 0, first_rounded = 0, both_rounded = 0;
  double second_rounded_and_flipped = 0;  // and one value of each slice of the first was rounded the other way
  double rounded_between = 0;             // both, and rounding in a form between the two
  std::optional<EntryPlace> largest;      // the largest difference beyond rounding
  int64_t entries = 0, differing = 0;
  bool blind = false;  // entries that the function does not see differ beyond rounding

  void add(const RowFindings& other);
  void rule_out_rounding();  // no explanation holds any more
};

struct RowRules {
  streams::Map map;       // from the stored rows of the first checkpoint to the Pre-LN model's
  double arithmetic;      // relative error of f64
  double coarsest;        // eps of the two checkpoints' coarsest dtype
  int64_t first_row = 0;  // index of the first row in the tensor
  Dims blind = {0, 0};    // among these rows: rows that the function does not see
};

// difference / bound: 0 if there is no difference; infinite if the difference is NaN, or the bound is 0.
double share(double difference, double bound);

// Tests if one stored value of a slice that was rounded the other way explains the differences `beyond` (>= 0, in the
// coordinates of the Pre-LN model). Returns the largest share of its bound that a difference uses: at most 1 if it
// explains them. The value moves the entries by `flip` times a column of `map`, which leads from stored rows to these
// coordinates (FormRow::canonical()).
double flipped_share(std::vector<double> beyond, double flip, const streams::Map& map);

// Compares the rows of a part. Runs on several threads; the result does not depend on their number.
RowFindings compare_rows(const std::string& name, const Canonical::Rows& a, const Canonical::Rows& b,
                         const RowRules& rules);

}  // namespace isonorm::equivalence
