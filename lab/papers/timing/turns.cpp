#include "lab/papers/timing/turns.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/blas.h"
#include "core/system/parallel.h"
#include "core/system/stopwatch.h"

namespace isonorm::papers {

Median median_of(std::vector<double> v) {
  constexpr double kError = 0.001;
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  // At most `outside` of n values lie on one given side of the true median, with probability `at_most`.
  const auto probability =
      [n = static_cast<double>(n)](size_t heads) {  // of `heads` in n tosses; by logarithms, since 2^-n may underflow
        const auto k = static_cast<double>(heads);
        return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
      };
  size_t outside = 0;
  double at_most = probability(0);
  while (at_most <= kError * (1 + 1e-12)) at_most += probability(++outside);
  const double middle = (v[(n - 1) / 2] + v[n / 2]) / 2;
  if (outside == 0) return {-INFINITY, middle, INFINITY};
  return {v[outside - 1], middle, v[n - outside]};
}

reports::TextCell ratio_cell(const Median& m, int digits) {
  return {printed("%.*f (%.*f to %.*f)", digits, m.median, digits, m.low, digits, m.high), {}, m.median};
}

std::string machine_text() {
  const BlasInfo blas = blas_info();
  return text(num_threads(), " threads, ", blas.version, " ", blas.core);
}

Turns in_turns(std::span<const std::function<double()>> works, const TurnsOptions& o) {
  const size_t count = works.size();
  for (const auto& work : works) work();
  std::vector<std::vector<double>> ratios(count);
  std::vector<double> first, seconds(count);
  const Stopwatch watch;
  Turns t;
  while (t.rounds < o.fewest || (t.rounds < o.most && watch.seconds() < o.seconds)) {
    for (size_t i = 0; i < count; ++i) {
      const size_t turn = (i + static_cast<size_t>(t.rounds)) % count;
      seconds[turn] = works[turn]();
    }
    first.push_back(seconds[0]);
    for (size_t i = 0; i < count; ++i) ratios[i].push_back(seconds[i] / seconds[0]);
    ++t.rounds;
  }
  t.seconds = median_of(first).median;
  for (auto& r : ratios) t.ratio.push_back(median_of(std::move(r)));
  return t;
}

void TimedSteps::add(const std::function<double()>& step) {
  const Stopwatch watch;
  losses.push_back(step());
  seconds.push_back(watch.seconds());
}

std::vector<double> TimedSteps::means(size_t of) const {
  std::vector<double> means;
  for (size_t begin = 0; begin + of <= losses.size(); begin += of) {
    double mean = 0;
    for (size_t i = begin; i < begin + of; ++i) mean += losses[i] / static_cast<double>(of);
    means.push_back(mean);
  }
  return means;
}

Median TimedSteps::time_ratio(const TimedSteps& reference) const {
  std::vector<double> ratios;
  for (size_t i = 10; i < seconds.size(); ++i) ratios.push_back(seconds[i] / reference.seconds[i]);
  return median_of(std::move(ratios));
}

double two_standard_errors(double share, double other, int64_t n) {
  const auto count = static_cast<double>(n);
  const double p = std::max((share + other) / 2, 1 / count);
  return 2 * std::sqrt(2 * p * (1 - p) / count);
}

}  // namespace isonorm::papers
