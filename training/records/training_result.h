// What one training did, step by step: plain data that text, log and report of a training show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "training/records/manifest.h"
#include "training/steps/loop.h"
#include "training/training_options.h"

namespace isonorm::training {

// A test pass after `step` updates, over what no step shows: test images, or held-out text.
struct Evaluation {
  int step = 0;
  double loss = 0;                     // mean cross-entropy, or the loss that evaluate() was given
  int64_t right = 0, predictions = 0;  // predictions: 0 if targets are no ids

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(predictions); }  // NaN: none
};

// Steps and evaluations in order; steps may be missing.
struct TrainingCourse {
  std::vector<TrainingStep> steps;
  std::vector<Evaluation> evaluations;
};

// Options that may change in the middle of a training: those of the update.
inline constexpr const char* kExtendable[] = {"steps", "lr", "warmup", "schedule", "min_lr", "weight_decay", "clip"};

struct TrainingResult {
  std::string form;
  TrainingOptions options;
  Manifest manifest;
  int64_t parameters = 0;
  int first_step = 1;                   // of this part of the training: more than 1 where a checkpoint was gone on with
  TrainingCourse earlier;               // what its log knows of the steps before first_step
  std::vector<TrainingStep> steps;      // first_step, first_step + 1, ...
  std::vector<Evaluation> evaluations;  // the last is of the trained model; none where there is nothing to test on
  std::optional<Evaluation> best;       // of the least loss, of all parts; none where nobody asked
  int patience = 0;  // so many test passes in turn were no better, and ended it; 0: it had all its steps
  double seconds = 0;
};

}  // namespace isonorm::training
