// Rounding that keeps the sum of a slice. crms_norm stores a slice of a writer without its last entry, which is minus the sum
// of the others: that entry is off by all of their roundings. These are alike in a binade where one mean is taken off numbers
// of one format, so that their sum grows with the width.
#pragma once

#include <string>

#include "core/tensor.h"
#include "io/number_format.h"

namespace isonorm::equivalence {

// x [.., n, ..] of f64: each entry becomes one of the two numbers of the format that lie beside it: along `dim` the nearer one,
// or the other where with the nearer one the sum so far would be off by more than half a step of the slice's largest entry
// (error diffusion). Bits do not depend on the number of threads. Throws as rounded().
Tensor rounded_with_sum(const Tensor& x, int dim, NumberFormat format, const std::string& name);

}  // namespace isonorm::equivalence
