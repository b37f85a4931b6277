// The learning-rate range test (Smith, "Cyclical Learning Rates for Training Neural Networks", 1506.01186, section 3.3): a short
// training whose rate grows exponentially; where its loss falls fastest is a rate to train with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace isonorm::training {

//   LrRange range(1e-7, 1, 100);
//   Loop loop(step, batches, [&](int64_t t) { return range.lr(t); });
//   loop.every(1, [&](const TrainingStep& s) { return range.take(s.loss); });
//   loop.run(range.steps());
class LrRange {
 public:
  // Throws if the rates are not 0 < from < to, if to / from is not finite, or if there are fewer than 2 steps.
  LrRange(double from, double to, int steps);

  double lr(int64_t step) const;  // from (to / from)^(step / (steps - 1)), step = 0, 1, ...
  int steps() const { return steps_; }

  // Takes in the loss of the next step. False where it has exploded: where it is not finite, or where the smoothed loss is over four
  // times the least.
  bool take(double loss);

  const std::vector<double>& losses() const { return losses_; }
  // Their running means a_t / (1 - 0.98^(t + 1)), a_t = 0.98 a_(t-1) + 0.02 loss_t, as of fastai.
  const std::vector<double>& smoothed() const { return smoothed_; }

  // The step where the smoothed loss falls fastest, of those before the least and behind the first tenth, in which the means are of few:
  // the fall from a twentieth of all steps before it to as many behind it. None where it never falls.
  std::optional<int> steepest() const;
  int least() const;  // the step of the least; 0 where there is none

 private:
  const double from_, to_;
  const int steps_;
  double sum_ = 0, decayed_ = 1;
  std::vector<double> losses_, smoothed_;
};

}  // namespace isonorm::training
