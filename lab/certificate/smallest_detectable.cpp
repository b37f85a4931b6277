#include "lab/certificate/smallest_detectable.h"

#include <cmath>

#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/made_examples.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

constexpr int kSizes = 12;

}  // namespace

const char* description(NegativeControl mistake) {
  return mistake == NegativeControl::eps     ? "another eps, (1 + x) 1e-5"
         : mistake == NegativeControl::entry ? "one entry of a weight, by x of the largest"
                                             : "one row of a weight, times 1 + x";
}

std::vector<Architecture> resolved_architectures() {
  return {architecture("gpt8"), architecture("gpt11"), architecture("vit5")};
}

SmallestDetectable smallest_detectable(NegativeControl mistake, const Architecture& a, DType dtype, int controls,
                                       uint64_t seed, const Continue& go_on) {
  SmallestDetectable result{.mistake = mistake, .dtype = dtype, .architecture = a, .smallest = NAN};
  const training::TrainingOptions o = training_options(a, dtype, seed);
  const auto initial = initial_model(o);
  RunResult reference = reference_record();
  std::vector<RunResult> moved = control_records(controls);
  std::vector<RunResult> runs(kSizes, record(raw_variant(streams::Form::rms_norm)));
  std::vector<double> sizes;
  Lockstep all(o, *initial, reference, moved, {});
  for (RunResult& run : runs) {
    const int k = static_cast<int>(sizes.size()) + (mistake == NegativeControl::eps ? 5 : 0);
    sizes.push_back(epsilon(dtype) * std::pow(4, k));
    training::TrainingOptions mine = o;
    if (mistake == NegativeControl::eps) mine.model.transformer().eps *= 1 + sizes.back();
    auto training = std::make_unique<NegativeControlTraining>(o, *run.variant, mistake, sizes.back());
    training->start_from(*initial);
    all.add(std::move(training), run);
  }
  if (!all.train_on_made(o, kNegativeSteps, go_on)) return result;
  const Deviations control = running_maximum(moved);
  for (size_t i = runs.size(); i-- > 0 && !(share_of_bound(runs[i].deviations, control, dtype) <= 1);)
    result.smallest = sizes[i];
  return result;
}

double detectable_everywhere(std::span<const SmallestDetectable> all, NegativeControl mistake, DType dtype) {
  double most = 0;
  for (const SmallestDetectable& r : all)
    if (r.mistake == mistake && r.dtype == dtype) most = larger(most, r.smallest);
  return most;
}

}  // namespace isonorm::equivalence
