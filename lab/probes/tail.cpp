#include "lab/probes/tail.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"

namespace isonorm::equivalence {

double Tail::rate(double x) const { return x <= threshold ? share : share * std::pow(x / threshold, -exponent); }

double Tail::value(double rate) const { return threshold * std::pow(std::min(1.0, rate / share), -1 / exponent); }

std::optional<Tail> fit_tail(std::vector<double> sample, double share) {
  const auto k = static_cast<size_t>(share * static_cast<double>(sample.size()));
  check(k >= 2 && k < sample.size(), "fit_tail: a share of ", share, " of ", sample.size(), " values are ", k,
        ", expected at least 2, and one that is left");
  std::nth_element(sample.begin(), sample.begin() + static_cast<ptrdiff_t>(k), sample.end(), std::greater<>());
  const double threshold = sample[k];
  if (!(threshold > 0)) return {};
  double logarithms = 0;
  for (size_t i = 0; i < k; ++i) logarithms += std::log(sample[i] / threshold);
  if (logarithms == 0) return {};
  return Tail{share, threshold, static_cast<double>(k) / logarithms};
}

double exceeded_by(std::vector<double> sample, double rate) {
  check(!sample.empty(), "exceeded_by: an empty sample");
  const size_t at = std::min(sample.size() - 1, static_cast<size_t>(rate * static_cast<double>(sample.size())));
  std::nth_element(sample.begin(), sample.begin() + static_cast<ptrdiff_t>(at), sample.end(), std::greater<>());
  return sample[at];
}

double part_above(const std::vector<double>& sample, double x) {
  return static_cast<double>(std::count_if(sample.begin(), sample.end(), [&](double v) { return v > x; })) /
         static_cast<double>(sample.size());
}

}  // namespace isonorm::equivalence
