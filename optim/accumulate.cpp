#include "optim/accumulate.h"

#include "optim/clip.h"

namespace isonorm::optim {

Accumulator::Accumulator(Optimizer& optimizer, int64_t passes, double max_norm)
    : optimizer_(optimizer), passes_(passes), max_norm_(max_norm) {
  check(passes >= 1, "accumulator: passes is ", passes, ", expected a number from 1");
  check(max_norm >= 0, "accumulator: max_norm is ", max_norm, ", expected a number from 0");
}

bool Accumulator::step() {
  if (++done_ < passes_) return false;
  done_ = 0;
  const double share = 1 / static_cast<double>(passes_);
  const double factor = max_norm_ > 0 ? clip_factor(gradient_norm(optimizer_.parameters()) * share, max_norm_) : 1;
  optimizer_.step(share * factor);
  optimizer_.zero_grad();
  return true;
}

}  // namespace isonorm::optim
