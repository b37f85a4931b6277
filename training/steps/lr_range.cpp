#include "training/steps/lr_range.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace isonorm::training {
namespace {

constexpr double kKept = 0.98;     // weight of the old running mean at each step
constexpr double kExploded = 4.0;  // times the smallest smoothed loss

}  // namespace

LrRange::LrRange(double from, double to, int steps) : from_(from), to_(to), steps_(steps) {
  check(from > 0 && from < to && std::isfinite(to / from), "lr_range: rates from ", from, " to ", to,
        ", expected two above 0, the larger last, at most 1e308 times the first");
  check(steps >= 2, "lr_range: ", steps, " steps, expected at least 2");
}

double LrRange::lr(int64_t step) const {
  return from_ * std::pow(to_ / from_, static_cast<double>(step) / (steps_ - 1));
}

bool LrRange::take(double loss) {
  if (!std::isfinite(loss)) return false;
  sum_ = kKept * sum_ + (1 - kKept) * loss;
  decayed_ *= kKept;
  losses_.push_back(loss);
  smoothed_.push_back(sum_ / (1 - decayed_));
  return smoothed_.back() <= kExploded * *std::ranges::min_element(smoothed_);
}

int LrRange::least() const { return static_cast<int>(std::ranges::min_element(smoothed_) - smoothed_.begin()); }

std::optional<int> LrRange::steepest() const {
  std::optional<int> at;
  const int reach = std::max(1, steps_ / 20);  // the ratio of the rates at both ends of a window is the same everywhere
  double fall = 0;
  for (int t = steps_ / 10 + reach; t + reach <= least(); ++t) {
    const double here = smoothed_[static_cast<size_t>(t - reach)] - smoothed_[static_cast<size_t>(t + reach)];
    if (here > fall) fall = here, at = t;
  }
  return at;
}

}  // namespace isonorm::training
