// What the steps are checked against: LayerNorm of rows and its gradient in f64, and how far rounding to f32 may be
// off. Independent of the steps: the gradient is differentiated through variance and mean one by one, where they have a
// closed formula.
#pragma once

#include <vector>

#include "core/kernels/norm.h"

namespace isonorm::workshop {

// `tolerance` is 4 eps(f32) sqrt(n) s: n is the number of terms in the sums that an entry hangs on, s the largest of
// the terms or results; rounding errors are independent, so they grow as a random walk.
struct Expected {
  std::vector<double> value;
  double tolerance = 0;
};
struct Reference {
  Expected y, dx, dgain, dbias;
};
Reference reference(const NormSpec& spec, const kernels::NormInputs& in, const Tensor& dy);

}  // namespace isonorm::workshop
