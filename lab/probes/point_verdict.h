// Judges whether errors at random points are rounding errors of correct arithmetic: every architecture and form by
// itself, against the predicted rounding error.
#pragma once

#include <cmath>

#include "lab/probes/point_errors.h"

namespace isonorm::equivalence {

// The error of a tensor at a point is divided by the predicted one, or by the median prediction over the points if that
// is larger (four predictions may all be small by chance). Limits, over the tensors of an architecture and form:
//   kMedianLimit   for the median over the points
//   kLargestLimit  for the largest
//   kScaleLimit    for |mean| of the errors of the scale
// They are chosen with room above the errors of correct arithmetic. `isonorm prove --certificate --seed N` prints, over
// seeds 1 to 6 and all architectures and forms, at most (f64, f32, bf16)
//   0.77, 1.71, 1.23 for the median;  2.97, 9.25, 5.39 for the largest;  0.53, 1.20, 0.94 for the scale
// Plain RMSNorm's gradients have at least 5.7. The prediction ignores the errors of exp, erf and tanh, and the order of
// sums.
inline constexpr double kMedianLimit = 3, kLargestLimit = 26, kScaleLimit = 2;

// The largest of the given values, and the name that came with it. NaN, once met, stays.
struct Extreme {
  double value = 0;
  std::string of = {};

  void take(double v, const std::string& whose) {
    if (!std::isnan(value) && larger(value, v) != value) value = v, of = whose;
  }
};

struct PointVerdict {
  Extreme median, largest, scale;  // over the tensors
  double least_seen = 0,
         always_seen = 0;  // one tensor's gradient times 1 + x is refused from these x on: the
                           // tensor that shows it most, and every tensor
  std::string reason;      // why it is refused; empty if it is not
  bool within() const { return reason.empty(); }
};

// Also refused: no tensors, a number of points other than `points`, numbers that are not finite, and a point at which
// all bits are equal, which means that it was compared with itself (accepted if may_be_equal).
PointVerdict judge(const FormErrors& errors, int points, DType dtype, bool may_be_equal = false);

// Judges one architecture in one dtype. Pre-LN itself and every form have to be within their limits, and plain RMSNorm,
// whose gradient is another one, must exceed the median's limit. Errors with activations kept in bf16 have no
// prediction: a form's error is divided by Pre-LN's own at the same point, or by the median of Pre-LN's errors if that
// is larger, since Pre-LN keeps the same number of activations. Logits of Pre-LN in reverse order may be equal: at
// width 2 sums of two commute.
struct ArchitectureVerdict {
  PointVerdict forms[kPointFormCount], plain;
  std::string reason;  // why it is refused; empty if it is not
  bool as_expected() const { return reason.empty(); }
};
ArchitectureVerdict judge(const PointErrors& errors, int points);

// The largest error of any tensor at each point.
std::vector<double> largest_errors(const FormErrors& errors);

// "Pre-LN itself", "crms_norm".
inline const char* name_of_form(size_t f) { return f == 0 ? "Pre-LN itself" : name_of(kPointForms[f]); }

}  // namespace isonorm::equivalence
