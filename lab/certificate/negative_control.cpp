#include "lab/certificate/negative_control.h"

#include <algorithm>

#include "core/printed.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/made_examples.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

void drop(training::TrainingOptions& o) { o.model.transformer().branch.dropout = 0.2; }
void scale_layers(training::TrainingOptions& o) { o.model.transformer().branch.layer_scale = 0.5; }
void take_final_norm(training::TrainingOptions& o) { o.model.transformer().final_norm = false; }
void change_eps(training::TrainingOptions& o) { o.model.transformer().eps = 1e-6; }
void couple_decay(training::TrainingOptions& o) {
  o.optimizer = &training::optimizer("adam");
  o.weight_decay = 0.1;
}

constexpr bool kSame = true, kOther = false;
//   name, claim, architecture, variant, same_start, mistake, options of all, options of the run, order of its branches
constexpr NegativeControlRow kNegativeControls[] = {
    {"writers recentred once, RMSNorm trained plainly",
     "the maps belong into every forward: RMSNorm alone is another training", "gpt2", "a2", kSame},
    {"compressed weights trained plainly", "d - 1 coordinates have another metric than d", "vit1", "c1", kSame},
    {"gradients recentred, Adam", "Adam's second moment does not commute with P", "gpt8", "a3", kSame},
    {"weights recentred after each step", "clipping and Adam see the mean of a gradient", "vit6", "a4", kSame},
    {"writers and readers recentred once", "Adam leaves the subspace of zero means", "vit9", "a6", kSame},
    {"gradients multiplied by the inverse metric, Adam", "a metric corrects linear optimizers alone", "gpt6", "c3",
     kSame},
    {"orthonormal coordinates trained plainly", "Adam depends on the axes", "vit11", "d1", kSame},
    {"recentred gradients and weights, Adam with L2", "an optimizer that reads the weights reads their means", "gpt10",
     "a5", kSame, NegativeControl::none, couple_decay},
    {"gains folded into their readers, then trained", "a learned gain is more than a part of its readers", "gpt7", "b",
     kSame, NegativeControl::frozen_gains},
    {"one batch of another seed", "all runs see the same batches", "gpt11", "c2", kSame, NegativeControl::batch},
    {"one entry of a weight moved by 1e-9", "the comparison sees every entry", "vit5", "b", kOther,
     NegativeControl::entry},
    {"eps 1e-6 for 1e-5", "eps belongs to the function", "vit3", "c5", kOther, NegativeControl::none, nullptr,
     change_eps},
    {"no final norm", "every reader of the stream needs a norm", "gpt1", "b", kOther, NegativeControl::none,
     take_final_norm},
    {"dropout after the recentred linear map", "a mask undoes a zero mean: recentring comes last", "gpt3", "c2", kOther,
     NegativeControl::none, drop, nullptr, BranchOrder::map_first},
    {"dropout between two recentrings", "P mask P is not P mask", "vit4", "b", kOther, NegativeControl::none, drop,
     nullptr, BranchOrder::map_first_and_last},
    {"layer scale after recentring", "a factor for each entry undoes a zero mean", "vit2", "b", kSame,
     NegativeControl::none, scale_layers, nullptr, BranchOrder::map_first},
    {"tied head reads the compressed table", "a tied head must read B (I + 11^T)", "gpt4", "c4", kOther,
     NegativeControl::uncorrected_head},
};

constexpr double kSurely = 2;  // foreseen multiple of the required effect: trainings in two dtypes differ a little

// The least deviation, as a multiple of criterion.h's requirement for a training that begins as the same function.
double times_separated(const Deviations& run, const Deviations& control, DType dtype) {
  const auto times = [&](double reached, const std::vector<double>& moved) {
    return reached / std::max(separation(dtype) * moved.back(), 1e-5);
  };
  const double loss = times(*std::max_element(run.loss.begin(), run.loss.end()), control.loss);
  return std::min({loss, times(run.gradient.back(), control.gradient), times(run.weight.back(), control.weight)});
}

// The deviations as a multiple of the requirement for this negative control.
double multiple(const NegativeControlRow& n, const Deviations& run, const Deviations& control, DType dtype) {
  if (!n.same_start) return share_of_bound(run, control, dtype) / kLeastExcess;
  return times_separated(run, control, dtype);
}

}  // namespace

std::span<const NegativeControlRow> negative_controls() { return kNegativeControls; }

NegativeControlResult run_negative(const NegativeControlRow& n, DType dtype, int controls, uint64_t seed,
                                   const NegativeControlResult* in_f64, const Continue& go_on) {
  NegativeControlResult result{.control = n, .dtype = dtype};
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
  auto training = std::make_unique<NegativeControlTraining>(mine, *result.run.variant, n.mistake);
  if (n.order) set_branch_order(training->model(), *n.order);
  training::TrainingOptions elsewhere = mine;
  ++elsewhere.seed;
  training->exchange_batch(kNegativeSteps / 2, made_examples(elsewhere, kNegativeSteps / 2));
  training->start_from(*initial);
  all.add(std::move(training), result.run);
  if (!all.train_on_made(o, kNegativeSteps, go_on)) return result;
  result.run.expected = Verdict::different;
  result.run.control = running_maximum(moved);
  if (in_f64) result.foreseen = multiple(n, in_f64->run.deviations, result.run.control, dtype);
  judge(result);
  return result;
}

void judge(NegativeControlResult& r) {
  RunResult& run = r.run;
  run.same_start = r.control.same_start;
  judge(run, r.dtype);
  r.excess = share_of_bound(run.deviations, run.control, r.dtype);
  r.detectable = r.dtype == DType::f64 || !(r.foreseen < kSurely);
  r.as_expected = run.as_expected || !r.detectable;
}

}  // namespace isonorm::equivalence
