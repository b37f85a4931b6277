#include "lab/probes/trajectory.h"

#include <algorithm>
#include <cmath>

#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/lockstep/negative_control.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

using streams::Form;

namespace {

Magnitudes reach_of_negative_controls(const training::TrainingOptions& o, const nn::Module& initial) {
  RunResult reference = reference_record();
  std::vector<RunResult> negative = negative_control_records(o);
  Lockstep all(o, initial, reference, {}, {});
  add_negative_controls(all, o, initial, negative, made_examples(o, kNegativeSteps));
  all.train_on_made(o, kNegativeSteps);
  return reach(negative);
}

double margin(const Horizon& h, const Deviations& control, DType dtype) {
  double least = control.loss.empty() ? 0 : INFINITY;
  for (const Quantity& q : kQuantities)
    if (!(control.*q.path).empty()) least = std::min(least, h.limit.*q.size / bound((control.*q.path).back(), dtype));
  return least;
}

constexpr Regime kRegimes[] = {
    {"dropout 0.2", "gpt2", [](training::TrainingOptions& o) { o.model.transformer().branch.dropout = 0.2; }},
    {"stochastic depth 0.3", "vit1",
     [](training::TrainingOptions& o) { o.model.transformer().branch.stochastic_depth = 0.3; }},
    {"layer scale 0.5", "vit6", [](training::TrainingOptions& o) { o.model.transformer().branch.layer_scale = 0.5; }},
    {"decay of matrices alone, 0.1", "gpt7",
     [](training::TrainingOptions& o) { o.decay_matrices_only = true, o.weight_decay = 0.1; }},
    {"batches in two parts", "gpt8", [](training::TrainingOptions& o) { o.accumulate = 2; }},
    {"average of the weights, 0.9", "vit4", [](training::TrainingOptions& o) { o.ema = 0.9; }},
    {"forms resumed after step 10", "gpt10", [](training::TrainingOptions& o) { o.resume_at = 10; }},
};

}  // namespace

std::span<const Regime> regimes() { return kRegimes; }

Trajectory train_architecture(const Architecture& a, DType dtype, int steps, int controls, uint64_t seed,
                              const Continue& go_on, const Regime* regime) {
  Trajectory t{.architecture = a, .dtype = dtype, .steps = steps, .regime = regime ? regime->name : ""};
  training::TrainingOptions o = training_options(a, dtype, seed);
  if (regime) regime->change(o);
  RunResult reference = reference_record();
  t.controls = control_records(controls);
  for (Form form : streams::centred_forms()) t.runs.push_back(record(raw_variant(form)));
  const auto initial = initial_model(o);
  Lockstep all(o, *initial, reference, t.controls, t.runs);
  if (!all.train_on_made(o, steps, go_on)) return t;
  t.reach = reach_of_negative_controls(o, *initial);
  judge(t);
  return t;
}

void judge(Trajectory& t) {
  const Deviations control = running_maximum(t.controls);
  t.horizon = horizon(control, t.reach, t.dtype);
  t.margin = margin(t.horizon, control, t.dtype);
  t.share_alone = 0;
  for (RunResult& run : t.runs) run.control = control;
  t.verdict = judge(t.runs, t.reach, t.dtype);
  for (size_t r = 0; r < t.runs.size(); ++r) {
    const RunResult& run = t.runs[r];
    const double share = share_of_bound(run.deviations, run.control, t.dtype);
    if (r == 0 || !(share <= t.share)) t.share = share, t.worst = r;
    for (const RunResult& c : t.controls)
      t.share_alone = larger(t.share_alone, share_of_bound(run.deviations, running_maximum({&c, 1}), t.dtype));
  }
}

}  // namespace isonorm::equivalence
