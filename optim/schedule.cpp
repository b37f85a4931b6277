#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace isonorm::optim {
namespace {

void check_step(int64_t step) { check(step >= 0, "schedule: step is ", step, ", expected a number from 0"); }
void check_peak(double peak) {
  check(peak >= 0 && std::isfinite(peak), "schedule: peak is ", peak, ", expected a finite number from 0");
}

}  // namespace

double Schedule::lr(int64_t step) const {
  check_step(step);
  check_peak(peak);
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
  check_step(step);
  check_peak(peak);
  check(every > 0, "schedule: every is ", every, ", expected the number of steps at one rate");
  check(factor >= 0 && std::isfinite(factor), "schedule: factor is ", factor, ", expected a finite number from 0");
  return peak * std::pow(factor, static_cast<double>(step / every));
}

double OneCycle::lr(int64_t step) const {
  check_step(step);
  check_peak(peak);
  check(steps > 0, "schedule: steps is ", steps, ", expected the length of the training");
  check(rise >= 0 && rise <= 1, "schedule: rise is ", rise, ", expected a number in [0, 1]");
  for (const double divisor : {start_divisor, end_divisor})
    check(divisor > 0 && std::isfinite(divisor), "schedule: a divisor is ", divisor,
          ", expected a finite number above 0");
  const double first = peak / start_divisor, last = first / end_divisor;
  const double top = rise * static_cast<double>(steps) - 1, end = static_cast<double>(steps) - 1;
  const auto t = static_cast<double>(step);
  const auto between = [](double a, double b, double x) {
    return a + (b - a) * (1 - std::cos(std::numbers::pi * std::clamp(x, 0.0, 1.0))) / 2;
  };
  if (t < top) return between(first, peak, t / top);
  return t < end ? between(peak, last, (t - top) / (end - top)) : last;
}

}  // namespace isonorm::optim
