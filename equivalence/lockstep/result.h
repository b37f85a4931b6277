// What a proof is asked and what it found: per run the deviations from the reference at every step, and the verdicts
// drawn from them. Plain data; criterion.h draws the verdicts, the room `text` and the command line show them.
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

// What a proof trains and holds against each other: every option of `isonorm prove`, with its default.
struct ProofOptions {
  training::TrainingOptions training;  // of the reference, which is always layer_norm, and of every other run
  // Held against the reference; named as nn names them.
  std::vector<std::string> forms = streams::names_of(streams::kCentredForms);
  // Another device: layer_norm is trained there, too, and held against the reference as a form is.
  std::optional<Device> against = {};
  int controls = 4;  // runs of the reference with every weight moved by one ulp
};
// Of a training with these options, and forms and controls among them.
training::Manifest manifest_of(const ProofOptions& options);

// undecided: nothing was seen either way, since rounding alone explains as much as a wrong training would show.
enum class Verdict { same, different, undecided };

constexpr const char* name_of(Verdict v) {
  return v == Verdict::same ? "same" : v == Verdict::different ? "different" : "undecided";
}

// Deviation from the reference at every step, each relative to the size of the quantity: a criterion's scale is 1.
//   loss      |l - l_ref| / |l_ref|
//   gradient  largest over tensors of max |g - g_ref| / max |g_ref|, in raw coordinates before clipping, not projected;
//             tensors whose exact gradient is zero (key biases) are divided by the largest entry of all gradients
//   weight    the same of the weights after the step, the directions that the function cannot see projected out
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
  int steps = 0;           // up to and with this step the bound lies below `limit` in each quantity
  Magnitudes limit;        // a third of what wrong trainings reach, at most 1e-5 in f64 and 1e-2 in f32
  Magnitudes resolution;   // the bound at the horizon (at step 1 where steps is 0): what exceeds it would have shown
  std::string ended_by{};  // the quantity whose bound reached its limit at the next step; empty where none did
  std::string term{};      // of that bound: "30 times the controls", "64 eps", or "the controls are not finite"
};

// A tensor that differs by more than rounding explains, or the loss.
struct DifferingTensor {
  std::string quantity;  // "loss", "gradient", "weight"
  EntryPlace place;      // the entry that is furthest off; of a loss: without a name
  double deviation = 0, bound = 0;
  bool as_a_whole = false;  // every entry is within its bound, and the size is not (compare/power.h)
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
  EntryPlace place;      // of a loss: without a name
  std::vector<DifferingTensor> tensors = {};
  std::vector<CompareCount> counts = {};  // the loss first
};

struct RunResult {
  std::string form;  // layer_norm, rms_norm, crms_norm, crms_isometric
  const Variant* variant = &raw_variant(streams::Form::layer_norm);
  std::optional<Device> device = {};  // where it is not trained on that of the reference
  uint64_t seed = 0;                  // of a control: what moved its weights by one ulp
  const char* fault = "";             // of a wrong training: what is wrong beside the variant
  Verdict expected = Verdict::same;
  bool same_start = true;  // where `different` is expected: it begins as the reference's function, and its gradient
  bool may_be_identical = false;  // equal to the reference to the last bit throughout: else it was compared with itself
  Verdict observed = Verdict::undecided;
  bool as_expected = false;  // observed == expected; where that is `different`, by the margin of criterion.h
  std::string reason;  // one sentence: the first step and quantity that decided, or by how much the bound was kept

  Magnitudes largest;     // deviations over the run
  Deviations deviations;  // empty for the reference itself
  Deviations control;     // D_c(t): largest deviation up to step t of any control that ran the same steps
  Magnitudes reach;       // of wrong trainings of the same model (criterion.h)
  Horizon horizon;        // what follows for this run

  std::optional<Difference> first_difference;  // as the lockstep met it, beyond bound(D_c(t))

  int64_t parameters = 0;
  std::vector<double> losses;
  std::optional<double> accuracy;                // on what no step showed, 0 to 1; none where no test pass ran
  std::optional<int64_t> differing_predictions;  // on how many of them the prediction is not the reference's
};

// The empty record of a run; `seed` is that of a control.
inline RunResult record(const Variant& variant, uint64_t seed = 0) {
  RunResult r;
  r.form = name_of(variant.form);
  r.variant = &variant;
  r.seed = seed;
  return r;
}

// Of Pre-LN as it is, and of its controls: seeds 1, 2, ...
inline RunResult reference_record() { return record(raw_variant(streams::Form::layer_norm)); }
inline std::vector<RunResult> control_records(int count) {
  std::vector<RunResult> controls;
  for (int c = 1; c <= count; ++c)
    controls.push_back(record(raw_variant(streams::Form::layer_norm), static_cast<uint64_t>(c)));
  return controls;
}

struct ProofResult {
  // same: every run came out as expected; different: one came out otherwise; undecided: one showed too little.
  Verdict verdict = Verdict::undecided;
  bool interrupted = false;  // the callback asked to stop: nothing is concluded
  ProofOptions options;
  training::Manifest manifest;
  RunResult reference;              // layer_norm: losses, accuracy, parameters
  RunResult negative_reference;     // layer_norm over the negative controls' steps: its losses (for show)
  std::vector<RunResult> controls;  // the reference moved by one ulp; deviations, no verdicts
  std::vector<RunResult> runs;      // the forms, then the two negative controls: what is judged
  Deviations control;               // D_c(t) over `controls`
  Horizon horizon;                  // of `runs` but the negative controls
  Magnitudes largest_control;       // its last entries
  int64_t test_count = 0;           // test images, or tokens of held-out text (0: no test pass)
  double seconds = 0;

  bool equivalent() const { return verdict == Verdict::same; }
};

enum class Phase { training, negative, testing };

constexpr const char* name_of(Phase p) {
  return p == Phase::training ? "training" : p == Phase::negative ? "negative controls" : "testing";
}

// Told after every lockstep step, and after every batch of the test pass.
struct StepInfo {
  Phase phase;
  int step, steps;   // of this phase; step counts from 1
  double loss;       // of the reference
  double deviation;  // largest so far over the forms and the three quantities (in the second phase: over the negative
                     // controls)
  double control_deviation;  // the same over the controls
  double lr;
  double seconds;             // since the proof began
  double done;                // part of the whole work that is behind, 0 to 1
  const ProofResult& so_far;  // manifest and options filled in, vectors grown up to this step
};

// Returns false to stop.
using ProgressCallback = std::function<bool(const StepInfo&)>;

}  // namespace isonorm::equivalence
