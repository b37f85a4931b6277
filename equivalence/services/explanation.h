// Explains the forward and backward of a norm on one row, step by step with numbers. It uses its own plain arithmetic,
// so that a reader or a test can compare it with the library's ops.
#pragma once

#include <string>
#include <vector>

#include "reports/result.h"

namespace isonorm::services {

// The error of two-point differences with one step.
struct DifferenceError {
  double step;
  double f64, f32;  // the largest |difference - dx|, with a forward in this dtype
};

struct Explanation {
  std::vector<double> y, dx;         // the normalised row, and the gradient with respect to x
  std::vector<double> dgain, dbias;  // gradients of gain and bias; empty if neither was given
  std::vector<DifferenceError> gradcheck;
  std::string text;
};

struct ExplainOptions {
  std::vector<double> gain = {}, bias = {};  // as long as x, for batch_norm one number; empty: 1 and 0
  bool gradcheck = false;  // also (f(x + h e_i) - f(x - h e_i)) / 2h, f = <dy, y>, for steps h from 1e-1 to 1e-10
};

// The norm with this name of the row x [n], and the gradient of <dz, z> with respect to x, where z = gain y + bias is
// the result (docs/normalization.md, "The norms"). crms_norm and crms_isometric take the stored row, which is one entry
// shorter than the full row. batch_norm takes the values of one channel over a batch; it prints the running statistics,
// too (Ioffe and Szegedy, arXiv 1502.03167, algorithms 1 and 2). Throws if there is no such norm, if x is empty, if
// batch_norm gets one value, or if dz, gain or bias has another length.
Explanation explain(const std::string& norm, const std::vector<double>& x, const std::vector<double>& dz, double eps,
                    const ExplainOptions& options = {});
// The names that explain() takes, "a, b or c".
std::string explained_norms();
bool is_explained(const std::string& norm);
// The result for programs.
const reports::Schema<Explanation>& explain_schema();

}  // namespace isonorm::services
