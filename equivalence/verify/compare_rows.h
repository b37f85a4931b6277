// Compares rows of two checkpoints in canonical coordinates, entry by entry: does rounding explain the difference, and
// which rule holds?
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "equivalence/judge/pairs.h"
#include "equivalence/verify/canonical.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The largest share of its bound that an entry uses, for each explanation. NaN counts as infinity.
struct Shares {
  double second = 0, first = 0, both = 0, through = 0, between = 0;

  void add(const Shares& other) {
    for (auto share : {&Shares::second, &Shares::first, &Shares::both, &Shares::through, &Shares::between})
      this->*share = std::max(this->*share, other.*share);
  }
};

// The findings about some rows. add() joins the findings about others.
struct RowFindings {
  Shares shares;
  std::optional<EntryPlace> largest;  // the largest difference beyond rounding
  int64_t entries = 0, differing = 0;
  bool blind = false;  // entries that the function does not see differ beyond rounding

  void add(const RowFindings& other);
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
