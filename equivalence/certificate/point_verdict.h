// When errors at random points are those of right arithmetic: every architecture and form judged by itself, against
// what rounding is predicted to do there.
#pragma once

#include "equivalence/certificate/point_errors.h"

namespace isonorm::equivalence {

// At a point, a tensor's error divided by what is predicted, or by the median of that over the points where this is
// larger (four predictions may all be small by chance). Limits, over the tensors of one architecture and form:
//   kMedianLimit   of the median over the points
//   kLargestLimit  of the largest
//   kScaleLimit    of |mean| of the errors of the scale
// Each is kModelFactor times what right arithmetic exceeds with a probability of 1e-3 in a whole certificate, if it is
// what the prediction says (`test_equivalence "predicted errors*"` measures that distribution): the largest of 80,000
// ratios from a power law through its quantiles at 1e-3 and 1e-4; a median of 20, one of 4,000, exceeds what a single
// ratio does with probability q with (20 over 10) q^10, so q = 0.065. kModelFactor is a choice: exp, erf and tanh, and
// the order of sums, cost something that the prediction leaves out.
inline constexpr double kModelFactor = 2;
inline constexpr double kMedianLimit = kModelFactor * 1.5, kLargestLimit = kModelFactor * 13,
                        kScaleLimit = kModelFactor * 1;

struct PointVerdict {
  double median = 0, largest = 0, scale = 0;    // of the tensors where it is largest
  std::string median_of, largest_of, scale_of;  // their names
  double least_seen = 0, always_seen = 0;       // a factor 1 + x of one tensor's gradient is refused from these x on:
                                                // for the tensor where it shows most, and for every tensor
  std::string reason;                           // why it is refused; empty where it is not
  bool within() const { return reason.empty(); }
};

// Refused, too: no tensors, another number of points than `points`, what is not finite, and a point at which nothing
// differs at all: it was compared with itself. `may_be_equal` allows that.
PointVerdict judge(const FormErrors& errors, int points, DType dtype, bool may_be_equal = false);

// One architecture in one dtype: Pre-LN itself and every form are within their limits, and plain RMSNorm, whose
// gradient is another one, is not within that of the median. Of width 2 Pre-LN in reverse order may be equal: sums of
// two commute.
struct ArchitectureVerdict {
  PointVerdict own, forms[3], plain;
  std::string reason;  // why it is refused; empty where it is not
  bool as_expected() const { return reason.empty(); }
};
ArchitectureVerdict judge(const PointErrors& errors, int points);

// The largest error of any tensor at each point.
std::vector<double> largest_errors(const FormErrors& errors);

// exp of the mean of logarithms: what a few points with a much larger error do not dominate. NaN of nothing.
double geometric_mean(const std::vector<double>& values);

}  // namespace isonorm::equivalence
