// A training: one step after the other, and what is to happen between them.
#pragma once

#include <utility>
#include <vector>

#include "core/system/stopwatch.h"
#include "training/steps/step.h"

namespace isonorm::training {

struct TrainingStep {
  int step = 0;  // from 1
  double lr = 0;
  double loss = 0;                           // before the update
  std::optional<double> gradient_norm = {};  // before clipping; none where nothing is clipped
  double seconds = 0;                        // since the loop was made
};

// Steps on batches at a rate, all three given by the number of the step.
//
//   training::Loop loop(step, [&](int64_t t) { return text.batch(t); }, [&](int64_t t) { return schedule.lr(t); });
//   loop.every(50, [](const training::TrainingStep& s) { return std::printf("%d  %.4f\n", s.step, s.loss), true; });
//   loop.run(1000);
class Loop {
 public:
  using Batches = std::function<Examples(int64_t step)>;  // step from 0
  using Rate = std::function<double(int64_t step)>;       // step from 0
  using Callback = std::function<bool(const TrainingStep& step)>;

  // Keeps a reference to `step`.
  Loop(Step& step, Batches batches, Rate rate);

  // After each n-th step `callback` is called, those that were given first come first; it returns false to stop behind
  // this step. n = 0: never.
  void every(int n, Callback callback);

  // Takes the steps behind `done` up to `steps`. Returns false where a callback stopped it, behind the last step, too;
  // the step that it stopped behind is done, and known to all callbacks.
  bool run(int steps, int done = 0);

 private:
  Step& step_;
  const Batches batches_;
  const Rate rate_;
  std::vector<std::pair<int, Callback>> callbacks_;
  const Stopwatch watch_;
};

}  // namespace isonorm::training
