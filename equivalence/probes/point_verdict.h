// When errors at random points are those of right arithmetic: every architecture and form judged by itself, against
// what rounding is predicted to do there.
#pragma once

#include <cmath>

#include "equivalence/probes/point_errors.h"

namespace isonorm::equivalence {

// At a point, a tensor's error divided by what is predicted, or by the median of that over the points where this is
// larger (four predictions may all be small by chance). Limits, over the tensors of one architecture and form:
//   kMedianLimit   of the median over the points
//   kLargestLimit  of the largest
//   kScaleLimit    of |mean| of the errors of the scale
// They are choices, with room above what right arithmetic does: over seeds 1 to 6 of all architectures and forms
// `isonorm prove --certificate --seed N` prints at most 0.77, 1.71 and 1.23 (f64, f32, bf16) for the median, 2.97, 9.25
// and 5.39 for the largest, 0.53, 1.20 and 0.94 for the scale; plain RMSNorm's gradients have at least 5.7. The
// prediction leaves out what exp, erf, tanh and the order of sums cost.
inline constexpr double kMedianLimit = 3, kLargestLimit = 26, kScaleLimit = 2;

// The largest of what was taken in, and whose it is. NaN, once met, stays.
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
         always_seen = 0;  // a factor 1 + x of one tensor's gradient is refused from these x on: for the
                           // tensor where it shows most, and for every tensor
  std::string reason;      // why it is refused; empty where it is not
  bool within() const { return reason.empty(); }
};

// Refused, too: no tensors, another number of points than `points`, what is not finite, and a point at which nothing
// differs at all: it was compared with itself. `may_be_equal` allows that.
PointVerdict judge(const FormErrors& errors, int points, DType dtype, bool may_be_equal = false);

// One architecture in one dtype. Errors with activations kept in bf16 have no prediction: the forms' are held against
// Pre-LN's own, which keeps as many, at the same point or in its median. Pre-LN itself and every form are within their
// limits, and plain RMSNorm, whose gradient is another one, is not within that of the median. Of width 2 Pre-LN in
// reverse order may be equal: sums of two commute.
struct ArchitectureVerdict {
  PointVerdict forms[kPointFormCount], plain;
  std::string reason;  // why it is refused; empty where it is not
  bool as_expected() const { return reason.empty(); }
};
ArchitectureVerdict judge(const PointErrors& errors, int points);

// The largest error of any tensor at each point.
std::vector<double> largest_errors(const FormErrors& errors);

// "Pre-LN itself", "crms_norm".
inline const char* name_of_form(size_t f) { return f == 0 ? "Pre-LN itself" : name_of(kPointForms[f]); }

}  // namespace isonorm::equivalence
