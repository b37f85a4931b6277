// The reference for the steps: LayerNorm of rows and its gradient in f64, with tolerances for rounding to f32. It is
// independent of the steps: it differentiates through variance and mean one by one, while the steps use a closed
// formula.
#pragma once

#include <vector>

#include "core/kernels/norm.h"

namespace isonorm::workshop {

// tolerance: 4 eps(f32) sqrt(n) s, with n the number of terms in an entry's sums, and s the largest term or result.
// Rounding errors are independent, so they grow like a random walk.
struct ExpectedValues {
  std::vector<double> value;
  double tolerance = 0;
};
struct Reference {
  ExpectedValues y, dx, dgain, dbias;
};
Reference reference(const NormSpec& spec, const kernels::NormInputs& in, const Tensor& dy);

}  // namespace isonorm::workshop
