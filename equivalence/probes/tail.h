// The upper tail of a sample: how rare a value beyond everything that was seen would be.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace isonorm::equivalence {

// A Pareto tail: P(X > x) = share (x / threshold)^-exponent for x from `threshold` on.
struct Tail {
  double share, threshold, exponent;

  double rate(double x) const;      // P(X > x); `share` at most
  double value(double rate) const;  // the x that is exceeded at that rate, of `share` at most
};

// Fitted to the largest `share` of the sample, a number in (0, 1), by Hill's estimator: with k values above the
// threshold, the next smaller one, 1 / exponent = the mean of log(x / threshold) (Hill, A simple general approach to
// inference about the tail of a distribution, 1975). A tail that falls faster than every power gets a rate that
// is too high beyond the sample. Nothing where the threshold is not positive or all k values
// equal it. Throws where k = floor(share n) < 2.
std::optional<Tail> fit_tail(std::vector<double> sample, double share);

// The value that a part `rate` of the sample exceeds: of n values in descending order number floor(rate n), from 0.
double exceeded_by(std::vector<double> sample, double rate);
// The part of the sample above x.
double part_above(const std::vector<double>& sample, double x);

}  // namespace isonorm::equivalence
