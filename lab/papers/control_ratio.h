// Compares controls with controls: how wide a bound do trainings need that differ by rounding alone?
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "equivalence/judge/run_result.h"

namespace isonorm::equivalence {

// The bound f D_c(t) + g eps that the deviations of a proof's runs stay within.
struct Needed {
  double factor = 0;  // the least f, if g is criterion.h's
  double floor = 0;   // the least g, if f is criterion.h's
};

// Return the factor and the floor of the present bound, read from criterion.h: 30 and 64.
double bound_factor(DType dtype);
double bound_floor(DType dtype);

// Returns the bound that one run needs: the largest over steps and over loss, gradient and weights. control: D_c(t), as
// running_maximum() gives it. Infinite if a deviation above the floor occurs while the controls are 0, or if a
// deviation is NaN.
Needed needed(const Deviations& run, const Deviations& control, DType dtype);

using DrawnProof = std::array<Needed, 3>;  // by run
Needed worst(const DrawnProof& proof);

// Draws `proofs` proofs and returns the bounds that their three runs need. A proof consists of `controls` controls and
// three runs, all different, drawn from `paths`. If `forms` has paths (three groups of equal size, one after the
// other), a run from each group is taken instead. Proofs share paths, so however many are drawn, they hold no more
// information than the paths; the statistical error is the difference between disjoint sets of paths. Proof i does not
// depend on the number of proofs.
std::vector<DrawnProof> drawn_proofs(std::span<const RunResult> paths, std::span<const RunResult> forms, int controls,
                                     int proofs, uint64_t seed, DType dtype);

// --- rare values: the upper tail of a sample ---

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

// Returns the value that a fraction `rate` of the sample exceeds: number floor(rate n), from 0, of the n values in
// descending order.
double exceeded_by(std::vector<double> sample, double rate);
// Returns the fraction of the sample above x.
double part_above(const std::vector<double>& sample, double x);

}  // namespace isonorm::equivalence
