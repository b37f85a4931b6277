// The options and the result of a proof: for each run the deviations from the reference at every step, and the
// verdicts. Plain data: criterion.h draws the verdicts, equivalence/text and the command line show them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "equivalence/coordinates/pairs.h"
#include "equivalence/coordinates/variant.h"
#include "streams/stream.h"
#include "training/records/manifest.h"
#include "training/training_options.h"

namespace isonorm::equivalence {

// The options of `isonorm prove`, with their defaults.
struct ProofOptions {
  training::TrainingOptions training;  // of the reference, which is always layer_norm, and of every other run
  // Forms that are compared with the reference, by name.
  std::vector<std::string> forms = streams::names_of(streams::centred_forms());
  // Another device: layer_norm is trained there, too, and compared with the reference like a form.
  std::optional<Device> against = {};
  int controls = 4;  // runs of the reference with every weight moved by one ulp
};
// The manifest of a training with these options; its option list includes forms and controls.
training::Manifest manifest_of(const ProofOptions& options);

// undecided: nothing was seen either way, since rounding alone can explain as much as a wrong training would show.
enum class Verdict { same, different, undecided };

constexpr const char* name_of(Verdict v) {
  return v == Verdict::same ? "same" : v == Verdict::different ? "different" : "undecided";
}

// Deviation from the reference at every step, each relative to the size of the quantity, so that 1 is the scale.
//   loss      |l - l_ref| / |l_ref|
//   gradient  largest over tensors of max |g - g_ref| / max |g_ref|, in raw coordinates before clipping, not projected;
//             tensors whose exact gradient is zero (key biases) are divided by the largest entry of all gradients
//   weight    the same for the weights after the step, without directions that the function cannot see
struct Deviations {
  std::vector<double> loss, gradient, weight;
};

// A number for each quantity that is compared.
struct Magnitudes {
  double loss = 0, gradient = 0, weight = 0;
};

struct Quantity {
  const char *name, *spoken;
  std::vector<double> Deviations::*path;
  double Magnitudes::*size;
};
inline constexpr Quantity kQuantities[] = {{"loss", "the loss", &Deviations::loss, &Magnitudes::loss},
                                           {"gradient", "gradients", &Deviations::gradient, &Magnitudes::gradient},
                                           {"weights", "weights", &Deviations::weight, &Magnitudes::weight}};

// How far a comparison can tell a right training from a wrong one.
struct Horizon {
  int steps = 0;           // the bound is below `limit` in each quantity up to this step
  Magnitudes limit;        // a third of `reach` (criterion.h), at most 1e-5 in f64 and 1e-2 in f32
  Magnitudes resolution;   // the bound at the horizon (at step 1 if steps is 0): larger deviations would be seen
  std::string ended_by{};  // the quantity whose bound reaches its limit at the next step; empty if none does
  std::string term{};  // the bound's largest term: "30 times the controls", "64 eps", or "the controls are not finite"
};

// A tensor, or the loss, that differs by more than rounding explains.
struct DifferingTensor {
  std::string quantity;  // "loss", "gradient", "weight"
  EntryPlace place;      // the entry that is furthest off; without a name for the loss
  double deviation = 0, bound = 0;
  bool as_a_whole = false;  // every entry is within its bound, but the size is not (coordinates/power.h)
};

// How many tensors of a quantity were compared at a step or point, and how many differ.
struct CompareCount {
  std::string quantity;
  size_t compared = 0, differing = 0;
};

// The first step at which a run differs from the reference by more than rounding: the entry that is furthest off, all
// tensors that differ at that step, and how many were compared.
struct Difference {
  int step;              // from 1
  const char* quantity;  // "loss", "gradient" or "weights"
  EntryPlace place;      // without a name for the loss
  std::vector<DifferingTensor> tensors = {};
  std::vector<CompareCount> counts = {};  // the loss first
};

struct RunResult {
  std::string form;  // layer_norm, rms_norm, crms_norm, crms_isometric
  const Variant* variant = &raw_variant(streams::Form::layer_norm);
  std::optional<Device> device = {};  // the device, if it is not the reference's
  uint64_t seed = 0;                  // of a control: the seed that moved its weights by one ulp
  const char* fault = "";             // of a wrong training: its mistake in addition to the variant
  Verdict expected = Verdict::same;
  bool same_start = true;         // if `different` is expected: loss and gradient begin as the reference's
  bool may_be_identical = false;  // false: equal bits throughout mean that it was compared with itself
  Verdict observed = Verdict::undecided;
  bool as_expected = false;  // observed == expected; for `different`, also by the margin of criterion.h
  std::string reason;        // one sentence: the first step and quantity that decided, or how far the bound was used

  Magnitudes largest;     // deviations over the run
  Deviations deviations;  // empty for the reference itself
  Deviations control;     // D_c(t): largest deviation up to step t of any control that ran the same steps
  Magnitudes reach;       // how far wrong trainings of the same model get (criterion.h)
  Horizon horizon;        // the horizon of this run

  std::optional<Difference> first_difference;  // as the lockstep found it, above bound(D_c(t))

  int64_t parameters = 0;
  std::vector<double> losses;
  std::optional<double> accuracy;                // on test examples, 0 to 1; none without a test pass
  std::optional<int64_t> differing_predictions;  // number of test predictions that differ from the reference's
};

// The empty record of a run. seed: for a control.
inline RunResult record(const Variant& variant, uint64_t seed = 0) {
  RunResult r;
  r.form = name_of(variant.form);
  r.variant = &variant;
  r.seed = seed;
  return r;
}

// The records of Pre-LN itself and of its controls, with seeds 1, 2, ...
inline RunResult reference_record() { return record(raw_variant(streams::Form::layer_norm)); }
inline std::vector<RunResult> control_records(int count) {
  std::vector<RunResult> controls;
  for (int c = 1; c <= count; ++c)
    controls.push_back(record(raw_variant(streams::Form::layer_norm), static_cast<uint64_t>(c)));
  return controls;
}

struct ProofResult {
  // same: every run was as expected; different: one was not; undecided: one showed too little.
  Verdict verdict = Verdict::undecided;
  bool interrupted = false;  // the callback asked to stop: nothing is concluded
  ProofOptions options;
  training::Manifest manifest;
  RunResult reference;              // layer_norm: losses, accuracy, parameters
  RunResult negative_reference;     // layer_norm over the negative controls' steps: its losses (for show)
  std::vector<RunResult> controls;  // the reference moved by one ulp; deviations, no verdicts
  std::vector<RunResult> runs;      // the forms, then the negative controls: the runs that are judged
  Deviations control;               // D_c(t) over `controls`
  Horizon horizon;                  // of `runs` without the negative controls
  Magnitudes largest_control;       // the last entries of `control`
  int64_t test_count = 0;           // test images, or tokens of held-out text (0: no test pass)
  double seconds = 0;

  bool equivalent() const { return verdict == Verdict::same; }
};

enum class Phase { training, negative, testing };

constexpr const char* name_of(Phase p) {
  return p == Phase::training ? "training" : p == Phase::negative ? "negative controls" : "testing";
}

// Passed to the callback after every lockstep step, and after every batch of the test pass.
struct StepInfo {
  Phase phase;
  int step, steps;   // of this phase; step counts from 1
  double loss;       // of the reference
  double deviation;  // largest so far over the forms and the three quantities (in the second phase: over the negative
                     // controls)
  double control_deviation;  // the same over the controls
  double lr;
  double seconds;             // since the proof began
  double done;                // part of the whole work that is done, 0 to 1
  const ProofResult& so_far;  // manifest and options filled in, vectors grown up to this step
};

// Returns false to stop.
using ProgressCallback = std::function<bool(const StepInfo&)>;

}  // namespace isonorm::equivalence
