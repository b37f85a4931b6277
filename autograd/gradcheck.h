// Compares gradients with finite differences: the test of an op, a layer or a loss that does not trust its author.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

struct GradcheckOptions {
  double tolerance = 1e-7;  // largest error, relative to the largest entry of that input's gradient
  double absolute = 1e-9;   // a gradient of which all entries, analytic and numeric, are below this counts as zero
  double step = 0x1p-10;    // distance of the evaluations, relative to the spread of the row an entry stands in
  uint64_t seed = 1;        // of the random cotangents
};

struct GradcheckResult {
  bool ok = true;
  int64_t entries = 0;  // compared, over all inputs
  // The worst entry: error is |analytic - numeric| over the largest entry of that input's gradient (over 1 where that
  // counts as zero).
  int input = -1;
  Dims index;
  double analytic = 0, numeric = 0, error = 0;

  std::string message() const;  // one line about the worst entry
};

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;
using TensorsFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Compares d <c, f(inputs)> / d inputs, c random, as backward() computes it with the four-point central difference
//   f'(x) ~ (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h
// (error h^4 f^(5) / 30; Abramowitz & Stegun 25.3.6) for every entry of every floating input. h is `step` times the
// standard deviation of the row (last dimension) that the entry stands in, so that rows far from 0 work; of the whole
// tensor where the row is constant, and of the entry's size, at most 1, where that is too. f gets contiguous copies of
// the inputs (any shapes; floating ones f64, others are passed on); it must give the same values each time, and be
// smooth within 2h: keep away from kinks and ties. Throws where an input or an output is f32 or bf16, or f is not
// repeatable.
GradcheckResult gradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o = {});
GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o = {});

}  // namespace isonorm
