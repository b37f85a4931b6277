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
  check(decay == Decay::constant || steps > 0, "schedule: steps is ", steps,
        ", expected the length of the training unless the decay is constant");
  check(warmup >= 0 && (decay == Decay::constant || warmup <= steps), "schedule: warmup is ", warmup,
        ", expected a number in [0, steps], steps is ", steps);
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay == Decay::constant) return peak;
  const double x = step >= steps ? 1.0 : static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  if (decay == Decay::linear) return peak + (floor - peak) * x;
  return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

}  // namespace isonorm::optim
