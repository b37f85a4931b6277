// Ready callbacks of a loop: progress, and the best test loss with the patience to wait for a better one.
#pragma once

#include <limits>
#include <string>

#include "core/system/moving_rate.h"
#include "core/system/terminal.h"
#include "training/steps/loop.h"

namespace isonorm::training {

// A line of progress on `line`, for Loop::every(1): "step 30/1000  loss 1.2345  lr 1.00e-03  1:23 left  11.6 steps/s".
class Progress {
 public:
  // Of a training of `steps` that goes on after `done`. Keeps a reference to `line`.
  Progress(StatusLine& line, int steps, int done = 0) : line_(line), steps_(steps), rate_(0, done) {}
  bool operator()(const TrainingStep& step);
  // After the last step, which may have come too soon after another one to be shown: leaves it on the screen.
  void end(const TrainingStep& last);

 private:
  void show(const TrainingStep& step);

  StatusLine& line_;
  const int steps_;
  int shown_ = 0;  // the step that was shown last
  const Stopwatch watch_;
  MovingRate rate_;  // steps
};

// The least test loss so far, and whether the wait for a lesser one is over. Losses come in order of steps.
class BestLoss {
 public:
  // patience: of how many losses in turn none is less, until it is over; 0: never.
  explicit BestLoss(int patience = 0) : patience_(patience) {}

  // Takes a loss in; whether it is the least so far. NaN never is.
  bool take(int step, double loss);
  bool over() const { return patience_ > 0 && since_ >= patience_; }

  int step() const { return step_; }       // of the least; 0: there was no loss yet
  double loss() const { return loss_; }    // the least
  int since() const { return since_; }     // losses after it
  int last_step() const { return last_; }  // of the last loss

  // All but the patience as words of a file, "0.5533 300 2 500". read() returns false, and changes nothing, if the
  // words are damaged.
  std::string written() const;
  bool read(const std::string& words);

 private:
  int patience_;
  double loss_ = std::numeric_limits<double>::infinity();
  int step_ = 0, since_ = 0, last_ = 0;
};

}  // namespace isonorm::training
