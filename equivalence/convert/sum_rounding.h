// Rounding that keeps the sum of a slice. crms_norm stores a slice of a writer without its last entry, which is minus
// the sum of the others, so that entry collects all rounding errors. If a mean is subtracted from numbers of the same
// format, these errors are alike within a binade, and their sum would grow with the width.
#pragma once

#include <string>

#include "core/tensor.h"
#include "io/number_format.h"

namespace isonorm::equivalence {

// Rounds x [.., n, ..] in f64 along `dim`. Each entry becomes the nearer of its two neighbours in the format, or the
// other one if with the nearer the error of the sum so far would exceed half a step of the slice's largest entry (error
// diffusion). Bits do not depend on the number of threads. Throws as rounded().
Tensor rounded_with_sum(const Tensor& x, int dim, NumberFormat format, const std::string& name);

}  // namespace isonorm::equivalence
