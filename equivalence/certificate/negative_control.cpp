#include "equivalence/certificate/negative_control.h"

#include <algorithm>

#include "core/printed.h"
#include "equivalence/lockstep/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/made_examples.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

void drop(training::TrainingOptions& o) { o.model.transformer().branch.dropout = 0.2; }
void scale_layers(training::TrainingOptions& o) { o.model.transformer().branch.layer_scale = 0.5; }
void recentre_first(training::TrainingOptions& o) { o.model.transformer().branch.recentring = nn::Recentring::first; }
void recentre_twice(training::TrainingOptions& o) {
  o.model.transformer().branch.recentring = nn::Recentring::first_and_last;
}
void take_final_norm(training::TrainingOptions& o) { o.model.transformer().final_norm = false; }
void change_eps(training::TrainingOptions& o) { o.model.transformer().eps = 1e-6; }
void couple_decay(training::TrainingOptions& o) {
  o.optimizer = &training::optimizer("adam");
  o.weight_decay = 0.1;
}

constexpr NegativeControl kNegativeControls[] = {
    {.name = "writers recentred once, RMSNorm trained plainly",
     .claim = "the maps belong into every forward: RMSNorm alone is another training",
     .architecture = "gpt2",
     .variant = "a2",
     .same_start = true},
    {.name = "compressed weights trained plainly",
     .claim = "d - 1 coordinates have another metric than d",
     .architecture = "vit1",
     .variant = "c1",
     .same_start = true},
    {.name = "gradients recentred, Adam",
     .claim = "Adam's second moment does not commute with P",
     .architecture = "gpt8",
     .variant = "a3",
     .same_start = true},
    {.name = "weights recentred after each step",
     .claim = "clipping and Adam see the mean of a gradient",
     .architecture = "vit6",
     .variant = "a4",
     .same_start = true},
    {.name = "writers and readers recentred once",
     .claim = "Adam leaves the subspace of zero means",
     .architecture = "vit9",
     .variant = "a6",
     .same_start = true},
    {.name = "gradients multiplied by the inverse metric, Adam",
     .claim = "a metric corrects linear optimizers alone",
     .architecture = "gpt6",
     .variant = "c3",
     .same_start = true},
    {.name = "orthonormal coordinates trained plainly",
     .claim = "Adam depends on the axes",
     .architecture = "vit11",
     .variant = "d1",
     .same_start = true},
    {.name = "recentred gradients and weights, Adam with L2",
     .claim = "an optimizer that reads the weights reads their means",
     .architecture = "gpt10",
     .variant = "a5",
     .same_start = true,
     .both = couple_decay},
    {.name = "gains folded into their readers, then trained",
     .claim = "a learned gain is more than a part of its readers",
     .architecture = "gpt7",
     .variant = "b",
     .same_start = true,
     .forgery = Forgery::frozen_gains},
    {.name = "one batch of another seed",
     .claim = "all runs see the same batches",
     .architecture = "gpt11",
     .variant = "c2",
     .same_start = true,
     .forgery = Forgery::batch},
    {.name = "one entry of a weight moved by 1e-9",
     .claim = "the comparison sees every entry",
     .architecture = "vit5",
     .variant = "b",
     .same_start = false,
     .forgery = Forgery::weight},
    {.name = "eps 1e-6 for 1e-5",
     .claim = "eps belongs to the function",
     .architecture = "vit3",
     .variant = "c5",
     .same_start = false,
     .run = change_eps},
    {.name = "no final norm",
     .claim = "every reader of the stream needs a norm",
     .architecture = "gpt1",
     .variant = "b",
     .same_start = false,
     .both = take_final_norm},
    {.name = "dropout after the recentred linear map",
     .claim = "a mask undoes a zero mean: recentring comes last",
     .architecture = "gpt3",
     .variant = "c2",
     .same_start = false,
     .both = drop,
     .run = recentre_first},
    {.name = "dropout between two recentrings",
     .claim = "P mask P is not P mask",
     .architecture = "vit4",
     .variant = "b",
     .same_start = false,
     .both = drop,
     .run = recentre_twice},
    {.name = "layer scale after recentring",
     .claim = "a factor for each entry undoes a zero mean",
     .architecture = "vit2",
     .variant = "b",
     .same_start = true,
     .both = scale_layers,
     .run = recentre_first},
    {.name = "tied head reads the compressed table",
     .claim = "a tied head must read B (I + 11^T)",
     .architecture = "gpt4",
     .variant = "c4",
     .same_start = false,
     .forgery = Forgery::uncorrected_head},
};

constexpr double kSurely = 2;  // a foreseen multiple of what is asked for: trainings in two dtypes differ a little

// How often the least of the deviations fits into what criterion.h asks of a training that begins as the same function.
double times_separated(const Deviations& run, const Deviations& control, DType dtype) {
  const auto times = [&](double reached, const std::vector<double>& moved) {
    return reached / std::max(separation(dtype) * moved.back(), 1e-5);
  };
  const double loss = times(*std::max_element(run.loss.begin(), run.loss.end()), control.loss);
  return std::min({loss, times(run.gradient.back(), control.gradient), times(run.weight.back(), control.weight)});
}

// By which multiple deviations exceed what is asked of a negative control.
double multiple(const NegativeControl& n, const Deviations& run, const Deviations& control, DType dtype) {
  if (!n.same_start) return share_of_bound(run, control, dtype) / kLeastExcess;
  return times_separated(run, control, dtype);
}

}  // namespace

std::span<const NegativeControl> negative_controls() { return kNegativeControls; }

NegativeResult run_negative(const NegativeControl& n, DType dtype, int controls, uint64_t seed,
                            const NegativeResult* in_f64, const Continue& go_on) {
  NegativeResult result{.control = n, .dtype = dtype};
  Architecture a = architecture(n.architecture);
  a.device = n.device;
  training::TrainingOptions o = training_options(a, dtype, seed);
  if (n.both) n.both(o);
  training::TrainingOptions mine = o;
  if (n.run) n.run(mine);
  const auto initial = initial_model(o);

  RunResult reference = reference_record();
  std::vector<RunResult> moved = control_records(controls);
  result.run = record(variant(n.variant));
  Lockstep all(o, *initial, reference, moved, {});
  auto forged = std::make_unique<Forged>(mine, *result.run.variant, n.forgery);
  training::TrainingOptions elsewhere = mine;
  ++elsewhere.seed;
  forged->exchange_batch(kNegativeSteps / 2, made_examples(elsewhere, kNegativeSteps / 2));
  forged->start_from(*initial);
  all.add(std::move(forged), result.run);
  if (!all.train_on_made(o, kNegativeSteps, go_on)) return result;
  result.run.expected = Verdict::different;
  result.run.control = running_maximum(moved);
  if (in_f64) result.foreseen = multiple(n, in_f64->run.deviations, result.run.control, dtype);
  judge(result);
  return result;
}

void judge(NegativeResult& r) {
  RunResult& run = r.run;
  run.same_start = r.control.same_start;
  judge(run, r.dtype);
  r.excess = share_of_bound(run.deviations, run.control, r.dtype);
  r.has_power = r.dtype == DType::f64 || !(r.foreseen < kSurely);
  r.as_expected = run.as_expected || !r.has_power;
}

}  // namespace isonorm::equivalence
