// Internal: Which side measured numbers have to lie on: what is the same below one bound, what is different above
// another.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/printed.h"
#include "reports/text_table.h"

namespace isonorm::equivalence {

class Margin {
 public:
  Margin(double same, double different) : same_(same), different_(different) {}

  // Takes a number in; Tone::bad where it lies on the wrong side, as NaN always does.
  reports::Tone take(double measured, bool same) {
    double& extreme = same ? largest_ : smallest_;
    if (same ? !(measured <= extreme) : !(measured >= extreme)) extreme = measured;
    const bool ok = same ? measured <= same_ : measured >= different_;
    kept_ = kept_ && ok;
    return ok ? reports::Tone::plain : reports::Tone::bad;
  }

  bool kept() const { return kept_; }  // by all so far
  double largest_same() const { return largest_; }
  double smallest_different() const { return smallest_; }

  std::string refuted() const {
    return text("one deviation above ", scientific(same_), " where none is expected, or one below ",
                scientific(different_), " where one is");
  }

 private:
  double same_, different_;
  double largest_ = 0, smallest_ = INFINITY;
  bool kept_ = true;
};

}  // namespace isonorm::equivalence
