// The result of a training, step by step: plain data for its text, log and report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "training/records/manifest.h"
#include "training/steps/loop.h"
#include "training/training_options.h"

namespace isonorm::training {

// The result of a test pass after `step` updates, over held-out examples.
struct Evaluation {
  int step = 0;
  double loss = 0;                     // mean cross-entropy, or the loss passed to evaluate()
  int64_t right = 0, predictions = 0;  // predictions: 0 if targets are not ids

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(predictions); }  // NaN: none
};

// Steps and evaluations in order; steps may be missing.
struct TrainingCourse {
  std::vector<TrainingStep> steps;
  std::vector<Evaluation> evaluations;
};

// Options that may change when a training is extended: they concern only the updates.
inline constexpr const char* kExtendable[] = {"steps", "lr", "warmup", "schedule", "min_lr", "weight_decay", "clip"};

struct TrainingResult {
  std::string form;
  TrainingOptions options;
  Manifest manifest;
  int64_t parameters = 0;
  int first_step = 1;                   // of this run; more than 1 if it resumed from a checkpoint
  TrainingCourse earlier;               // steps before first_step, from the log
  std::vector<TrainingStep> steps;      // first_step, first_step + 1, ...
  std::vector<Evaluation> evaluations;  // the last one: the trained model; empty without test examples
  std::optional<Evaluation> best;       // smallest loss over all runs; unset if not requested
  int patience = 0;                     // number of test passes without improvement that ended it; 0: it took all steps
  double seconds = 0;
};

}  // namespace isonorm::training
