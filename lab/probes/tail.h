// The upper tail of a sample: how rare are values beyond the largest one?
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace isonorm::equivalence {

// A Pareto tail: P(X > x) = share (x / threshold)^-exponent for x from `threshold` on.
struct Tail {
  double share, threshold, exponent;

  double rate(double x) const;      // P(X > x), at most `share`
  double value(double rate) const;  // the x that is exceeded at this rate, which is at most `share`
};

// Fits a tail to the largest `share` of the sample, a number in (0, 1), by Hill's estimator: with the k values above
// the threshold, which is the next smaller value, 1 / exponent = the mean of log(x / threshold) (Hill, A simple general
// approach to inference about the tail of a distribution, 1975). If the true tail falls faster than every power, the
// rate is too high beyond the sample. Nothing if the threshold is not positive or all k values equal it. Throws if k =
// floor(share n) < 2.
std::optional<Tail> fit_tail(std::vector<double> sample, double share);

// The value that a fraction `rate` of the sample exceeds: number floor(rate n), from 0, of the n values in descending
// order.
double exceeded_by(std::vector<double> sample, double rate);
// The fraction of the sample above x.
double part_above(const std::vector<double>& sample, double x);

}  // namespace isonorm::equivalence
