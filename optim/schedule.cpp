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

}  // namespace isonorm::optim
