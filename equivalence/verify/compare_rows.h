// Rows of two checkpoints in canonical coordinates, entry by entry: what of their difference rounding explains, and by which
// rule.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "equivalence/convert/canonical.h"
#include "equivalence/coordinates/pairs.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The largest share of its bound that an entry takes, by what may explain it. NaN counts as infinity.
struct Shares {
  double second = 0, first = 0, both = 0, through = 0, between = 0;

  void add(const Shares& other) {
    for (auto share : {&Shares::second, &Shares::first, &Shares::both, &Shares::through, &Shares::between})
      this->*share = std::max(this->*share, other.*share);
  }
};

// What was found about some rows, beside what was about others.
struct RowFindings {
  Shares shares;
  std::optional<EntryPlace> largest;  // what differs most beyond rounding
  int64_t entries = 0, differing = 0;
  bool blind = false;  // entries that the function does not see differ beyond rounding

  void add(const RowFindings& other);
};

struct RowRules {
  streams::Form form;     // of the first
  streams::Role role;     // of what the rows are of
  double arithmetic;      // relative error of f64
  double coarsest;        // eps of the two checkpoints' coarsest dtype
  int64_t first_row = 0;  // of these rows in the tensor
  Dims blind = {0, 0};    // rows that the function does not see, in these
};

// The rows of one part. Runs on several threads; the result does not depend on how many.
RowFindings compare_rows(const std::string& name, const Canonical::Rows& a, const Canonical::Rows& b,
                         const RowRules& rules);

}  // namespace isonorm::equivalence
