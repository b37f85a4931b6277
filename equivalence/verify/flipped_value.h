// Which differences one value of a slice explains that was rounded the other way.
#pragma once

#include <vector>

#include "nn/module.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The share of its bound that a difference takes: 0 where nothing differs, infinite where it is NaN or the bound is 0.
double share(double difference, double bound);

// The share that one value of a slice, stored in that form and rounded the other way, takes of the differences
// `beyond` (>= 0, in the coordinates of the Pre-LN model): at most 1 where it explains them. It moves the entries by
// `flip` times a column of the map (streams/coordinates.h). In P and D+^T that is at most 1 for one entry and 1/d for the
// others, in D 1 for two entries and 0 for the others, and column k of Q is 1/sqrt(k(k+1)) in rows below k,
// k/sqrt(k(k+1)) in row k and 0 in the others.
double flipped_share(std::vector<double> beyond, double flip, streams::Form form, streams::Role role);

}  // namespace isonorm::equivalence
