// Ready-made callbacks of a loop: a progress line, and the best test loss with a patience.
#pragma once

#include <limits>
#include <string>

#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "training/steps/loop.h"

namespace isonorm::training {

// Writes the progress to `line`, for Loop::every(1): "step 30/1000  loss 1.2345  lr 1.00e-03  1:23 left  11.6 steps/s".
class Progress {
 public:
  // steps: of the whole training; done: steps before this run. Keeps a reference to `line`.
  Progress(StatusLine& line, int steps, int done = 0) : line_(line), steps_(steps), rate_(0, done) {}
  bool operator()(const TrainingStep& step);
  // Leaves the last step on the screen, even if it came too soon after another step to be shown.
  void end(const TrainingStep& last);

 private:
  void show(const TrainingStep& step);

  StatusLine& line_;
  const int steps_;
  int shown_ = 0;  // the step that was shown last
  const Stopwatch watch_;
  MovingRate rate_;  // of steps
};

// The smallest test loss so far, and whether to stop waiting for a smaller one. Losses come in the order of steps.
class BestLoss {
 public:
  // patience: over() is true after this number of losses in a row without a new minimum; 0: never.
  explicit BestLoss(int patience = 0) : patience_(patience) {}

  // Records a loss. Returns true if the loss is the smallest so far; false for a NaN.
  bool take(int step, double loss);
  bool over() const { return patience_ > 0 && since_ >= patience_; }

  int step() const { return step_; }       // step of the smallest loss; 0: there was no loss yet
  double loss() const { return loss_; }    // the smallest loss
  int since() const { return since_; }     // number of losses after it
  int last_step() const { return last_; }  // step of the last loss

  // Everything except the patience as words for a file, "0.5533 300 2 500". read() returns false and changes nothing if
  // the words are damaged.
  std::string written() const;
  bool read(const std::string& words);

 private:
  int patience_;
  double loss_ = std::numeric_limits<double>::infinity();
  int step_ = 0, since_ = 0, last_ = 0;
};

}  // namespace isonorm::training
