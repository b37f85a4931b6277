#include "equivalence/probes/trajectory.h"

#include <algorithm>
#include <cmath>

#include "equivalence/lockstep/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/lockstep/wrong_training.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

using streams::Form;

namespace {

Magnitudes train_wrong(const training::TrainingOptions& o, const nn::Module& initial) {
  RunResult reference = record(raw_variant(Form::layer_norm));
  std::vector<RunResult> wrong = wrong_records(o);
  Lockstep all(o, initial, reference, {}, {});
  add_wrong(all, o, initial, wrong, made_examples(o, kNegativeSteps));
  for (int step = 0; step < kNegativeSteps; ++step) all.step(made_examples(o, static_cast<uint64_t>(step)), o.lr);
  return reach(wrong);
}

double power(const Horizon& h, const Deviations& control, DType dtype) {
  double least = control.loss.empty() ? 0 : INFINITY;
  const auto take = [&](double limit, const std::vector<double>& reached) {
    if (!reached.empty()) least = std::min(least, limit / bound(reached.back(), dtype));
  };
  take(h.limit.loss, control.loss);
  take(h.limit.gradient, control.gradient);
  take(h.limit.weight, control.weight);
  return least;
}

}  // namespace

Trajectory train_architecture(const Architecture& a, DType dtype, int steps, int controls, uint64_t seed,
                              const Continue& go_on, const Regime* regime) {
  Trajectory t{.architecture = a, .dtype = dtype, .steps = steps, .regime = regime ? regime->name : ""};
  training::TrainingOptions o = training_options(a, dtype, seed);
  if (regime) regime->change(o);
  RunResult reference = record(raw_variant(Form::layer_norm));
  for (int c = 1; c <= controls; ++c)
    t.controls.push_back(record(raw_variant(Form::layer_norm), static_cast<uint64_t>(c)));
  for (Form form : streams::kCentredForms) t.runs.push_back(record(raw_variant(form)));
  const auto initial = initial_model(o);
  Lockstep all(o, *initial, reference, t.controls, t.runs);
  for (int step = 0; step < steps; ++step) {
    all.step(made_examples(o, static_cast<uint64_t>(step)), o.lr);
    if (go_on && !go_on()) return t;
  }
  t.reach = train_wrong(o, *initial);
  judge(t);
  return t;
}

void judge(Trajectory& t) {
  const Deviations control = running_maximum(t.controls);
  t.horizon = horizon(control, t.reach, t.dtype);
  t.power = power(t.horizon, control, t.dtype);
  t.share_alone = 0;
  bool same = !t.runs.empty(), different = false;
  for (size_t r = 0; r < t.runs.size(); ++r) {
    RunResult& run = t.runs[r];
    run.control = control;
    run.reach = t.reach;
    judge(run, t.dtype);
    same = same && run.as_expected;
    different = different || run.observed == Verdict::different;
    const double share = share_of_bound(run.deviations, run.control, t.dtype);
    if (r == 0 || !(share <= t.share)) t.share = share, t.worst = r;
    for (const RunResult& c : t.controls)
      t.share_alone = larger(t.share_alone, share_of_bound(run.deviations, running_maximum({&c, 1}), t.dtype));
  }
  t.verdict = different ? Verdict::different : same ? Verdict::same : Verdict::undecided;
}

}  // namespace isonorm::equivalence
