#include "equivalence/compare/repeats.h"

#include <cmath>

#include "core/printed.h"
#include "equivalence/convert/state.h"
#include "equivalence/judge/criterion.h"
#include "training/steps/loop.h"

namespace isonorm::equivalence {

std::string not_repeatable(const char* model, const OwnTraining& once, const OwnTraining& again, DType dtype) {
  const auto because = [&](const auto&... what) {
    return text("the ", model, " model is not repeatable: run twice with the same weights on the same examples, its ",
                what..., " (state that a forward changes, or draws from another generator than the default one)");
  };
  const double limit = bound(0, dtype);
  if (std::abs(again.loss() - once.loss()) > limit * std::abs(once.loss()))
    return because("loss is ", number_text(once.loss()), " and then ", number_text(again.loss()));
  const std::vector<Pair> pairs = again.gradient_pairs(once);
  double largest = 0;
  for (const Pair& p : pairs) largest = larger(largest, p.scale);
  for (const Pair& p : pairs)
    if (p.scale > 1000 * epsilon(dtype) * largest && deviation({p}) > limit) {
      const EntryPlace place = *furthest_off({p});
      return because("gradient of ", place.tensor, place.index.rank > 0 ? text(place.index) : "", " is ",
                     number_text(place.reference), " and then ", number_text(place.value));
    }
  return "";
}

std::string not_finite(const OwnTraining& run) {
  if (!std::isfinite(run.loss())) return text("loss is ", number_text(run.loss()));
  for (const Pair& p : run.gradient_pairs(run))
    if (!training::is_finite(p.value)) return text("gradient of ", p.name, " is not finite");
  return "";
}

}  // namespace isonorm::equivalence
