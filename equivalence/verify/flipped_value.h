// Which differences are explained by one value of a slice that was rounded the other way?
#pragma once

#include <vector>

#include "nn/module.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// difference / bound: 0 if there is no difference; infinite if the difference is NaN, or the bound is 0.
double share(double difference, double bound);

// Tests if one value of a slice, stored in this form and rounded the other way, explains the differences `beyond` (>=
// 0, in the coordinates of the Pre-LN model). Returns the largest share of its bound that a difference uses: at most 1
// if it explains them. The value moves the entries by `flip` times a column of the map (streams/coordinates.h). In P
// and D+^T that is at most 1 for one entry and 1/d for the others; in D 1 for two entries and 0 for the others. Column
// k of Q is 1/sqrt(k(k+1)) in rows before k, k/sqrt(k(k+1)) in row k and 0 in the others.
double flipped_share(std::vector<double> beyond, double flip, streams::Form form, streams::Role role);

}  // namespace isonorm::equivalence
