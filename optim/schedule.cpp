#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace isonorm::optim {

double Schedule::lr(int64_t step) const {
  check(step >= 0, "schedule: step is ", step, ", expected a number from 0");
  check(peak >= 0 && std::isfinite(peak), "schedule: peak is ", peak, ", expected a finite number from 0");
  check(floor >= 0 && std::isfinite(floor), "schedule: floor is ", floor, ", expected a finite number from 0");
  const bool ends = decay == Decay::linear || decay == Decay::cosine;
  check(!ends || steps > 0, "schedule: steps is ", steps,
        ", expected the length of the training where the decay is linear or cosine");
  check(warmup >= 0 && (!ends || warmup <= steps), "schedule: warmup is ", warmup,
        ", expected a number in [0, steps], steps is ", steps);
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay == Decay::constant) return peak;
  if (decay == Decay::inverse_sqrt)
    return std::max(
        floor, peak * std::sqrt(static_cast<double>(std::max<int64_t>(1, warmup)) / static_cast<double>(step + 1)));
  const double x = step >= steps ? 1.0 : static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  if (decay == Decay::linear) return peak + (floor - peak) * x;
  return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

double StepDecay::lr(int64_t step) const {
  check(step >= 0, "step decay: step is ", step, ", expected a number from 0");
  check(step_size > 0, "step decay: step_size is ", step_size, ", expected a number above 0");
  check(peak >= 0 && std::isfinite(peak), "step decay: peak is ", peak, ", expected a finite number from 0");
  check(gamma >= 0 && std::isfinite(gamma), "step decay: gamma is ", gamma, ", expected a finite number from 0");
  return peak * std::pow(gamma, static_cast<double>(step / step_size));
}

double OneCycle::lr(int64_t step) const {
  check(step >= 0, "one cycle: step is ", step, ", expected a number from 0");
  check(steps > 0, "one cycle: steps is ", steps, ", expected a number above 0");
  check(peak >= 0 && std::isfinite(peak), "one cycle: peak is ", peak, ", expected a finite number from 0");
  check(pct_start >= 0 && pct_start <= 1, "one cycle: pct_start is ", pct_start, ", expected a number in [0, 1]");
  for (const double factor : {div_factor, final_div_factor})
    check(factor > 0 && std::isfinite(factor), "one cycle: a factor is ", factor, ", expected a finite number above 0");
  const double first = peak / div_factor, last = first / final_div_factor, end = static_cast<double>(steps - 1);
  const double t = std::min(static_cast<double>(step), end), turn = pct_start * static_cast<double>(steps) - 1;
  const auto between = [&](double from, double to, double x) {
    return linear ? from + (to - from) * x : to + (from - to) * (1 + std::cos(std::numbers::pi * x)) / 2;
  };
  if (t <= turn && turn > 0) return between(first, peak, t / turn);
  return between(peak, last, end > turn ? (t - turn) / (end - turn) : 1);
}

}  // namespace isonorm::optim
