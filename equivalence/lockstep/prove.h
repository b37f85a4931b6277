// prove(): trains the reference, its controls, the forms and the negative controls in lockstep and judges them.
// judge/criterion.h draws the verdicts; equivalence/text shows the result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "equivalence/judge/run_result.h"
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

struct ProofResult {
  // equivalent: every run was as expected; different: one was not; undecided: one showed too little.
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

  bool equivalent() const { return verdict == Verdict::equivalent; }
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

// Trains layer_norm, `options.controls` copies moved by one ulp, every form with raw parameters and the negative
// controls on the same batches from one initialization. If `options.against` names another device, trains layer_norm
// there, too. Compares loss, gradients and weights at every step; criterion.h draws the verdicts. Calls `progress`
// after every step. Throws if options make no model, if `against` is the reference's device, on bad data
// (ErrorKind::invalid) and on unreadable files (ErrorKind::io).
ProofResult prove(const ProofOptions& options, const ProgressCallback& progress = {});

// Fills control, the largest deviations of the controls, reach and horizon (from the runs that are expected to be
// different). Gives every run without a `control` of its own the proof's, and judges all runs. The verdict of an
// interrupted proof is undecided.
void conclude(ProofResult& proof);

}  // namespace isonorm::equivalence
