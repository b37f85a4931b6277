// A norm's forward and backward on one row, step by step with the numbers. Plain arithmetic of its own, so that a
// reader (and a test) can hold it against the library's ops.
#pragma once

#include <string>
#include <vector>

namespace isonorm::services {

struct Explanation {
  std::vector<double> y, dx;
  std::string text;
};

// The affine-free norm of that name of the row x, and the gradient of <dy, y> in x (docs/normalization.md, "The norms"). crms_norm
// and crms_isometric take the stored row, one entry shorter than the row that it stands for. x is not empty, dy is as
// long. Throws on another name.
Explanation explain(const std::string& norm, const std::vector<double>& x, const std::vector<double>& dy, double eps);

}  // namespace isonorm::services
