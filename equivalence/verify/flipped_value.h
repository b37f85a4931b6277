// Which differences are explained by one value of a slice that was rounded the other way?
#pragma once

#include <vector>

#include "streams/map.h"

namespace isonorm::equivalence {

// difference / bound: 0 if there is no difference; infinite if the difference is NaN, or the bound is 0.
double share(double difference, double bound);

// Tests if one stored value of a slice that was rounded the other way explains the differences `beyond` (>= 0, in the
// coordinates of the Pre-LN model). Returns the largest share of its bound that a difference uses: at most 1 if it
// explains them. The value moves the entries by `flip` times a column of `map`, which leads from stored rows to these
// coordinates (FormRow::canonical()).
double flipped_share(std::vector<double> beyond, double flip, const streams::Map& map);

}  // namespace isonorm::equivalence
