#include "lab/certificate/negative_control.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/made_examples.h"
#include "isonorm.h"
#include "nn/branch.h"
#include "streams/attached.h"
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

// Returns the smallest of the deviations of loss, gradients and weights, each as a multiple of what criterion.h
// requires when both trainings start from the same function.
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

// The map of the stream where BranchOutput does not recognise it as a map of its output. Rows that the stream does not
// store become zeros, so that layer scale and mask have d entries.
struct MapFirst : streams::Writes {
  explicit MapFirst(const streams::Stream& stream) : Writes(stream, 0) {}
  Tensor operator()(const Tensor& raw) const override {
    const Tensor mapped = stream.write(raw, 0);
    Dims missing = raw.shape();
    missing[0] -= mapped.size(0);
    return missing[0] == 0 ? mapped : cat({mapped, zeros(missing, raw.options())}, 0);
  }
  bool is_output_map() const override { return false; }
};

// Leaves out the rows that MapFirst added.
struct StoredEntries : streams::Writes {
  explicit StoredEntries(const streams::Stream& stream) : Writes(stream, 0) {}
  Tensor operator()(const Tensor& x) const override { return narrow(x, 0, 0, stream.stored_width()); }
  Tensor map_output(const Tensor& y) const override { return narrow(y, -1, 0, stream.stored_width()); }
};

// P, also in forms that store d - 1 entries.
struct RecentresFirst : nn::Parametrisation {
  Tensor operator()(const Tensor& raw) const override { return streams::recentre(raw, 0); }
};

constexpr int kSizes = 12;

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

void set_branch_order(nn::Module& model, BranchOrder order) {
  for (const auto& [_, m] : model.named_modules()) {
    auto* branch = dynamic_cast<nn::BranchOutput*>(m);
    if (!branch) continue;
    for (nn::Parameter* p : {&branch->weight, &branch->bias}) {
      const auto* writes = streams::find<streams::Writes>(p->parametrisations());
      if (!writes) continue;
      nn::Parametrisations all = p->parametrisations();  // layer scale, if there is one, and the stream's
      if (order == BranchOrder::map_first) {
        all.back() = std::make_shared<StoredEntries>(writes->stream);
        all.insert(all.begin(), std::make_shared<MapFirst>(writes->stream));
      } else {
        all.insert(all.begin(), std::make_shared<RecentresFirst>());
      }
      p->set_parametrisations(std::move(all));
    }
  }
}

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
