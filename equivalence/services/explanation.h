// Explains the forward and backward of a norm on one row, step by step with numbers. It uses its own plain arithmetic,
// so that a reader or a test can compare it with the library's ops.
#pragma once

#include <string>
#include <vector>

namespace isonorm::services {

struct Explanation {
  std::vector<double> y, dx;
  std::string text;
};

// Applies the named norm, without gain and bias, to the row x, and computes the gradient of <dy, y> with respect to x
// (docs/normalization.md, "The norms"). For crms_norm and crms_isometric, x is a stored row, one entry shorter than the
// full row. x must not be empty; dy has the same length. Throws if there is no norm with this name.
Explanation explain(const std::string& norm, const std::vector<double>& x, const std::vector<double>& dy, double eps);

}  // namespace isonorm::services
