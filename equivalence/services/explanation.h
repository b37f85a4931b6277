// Explains the forward and backward of a norm on one row, step by step with numbers. It uses its own plain arithmetic,
// so that a reader or a test can compare it with the library's ops.
#pragma once

#include <string>
#include <vector>

#include "reports/result.h"

namespace isonorm::services {

struct Explanation {
  std::vector<double> y, dx;  // the normalised row, and the gradient with respect to x
  std::string text;
};

// The norm with this name, without gain and bias, of the row x [n], and the gradient of <dy, y> with respect to x
// (docs/normalization.md, "The norms"). crms_norm and crms_isometric take the stored row, which is one entry shorter
// than the full row. Throws if there is no such norm, if x is empty, or if dy has another length.
Explanation explain(const std::string& norm, const std::vector<double>& x, const std::vector<double>& dy, double eps);
// The result for programs.
const reports::Schema<Explanation>& explain_schema();

}  // namespace isonorm::services
