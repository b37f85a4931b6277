// The learning-rate range test (Smith, "Cyclical Learning Rates for Training Neural Networks", 1506.01186, section
// 3.3): a short training with an exponentially growing learning rate. The rate at which the loss falls fastest is a
// good one.
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

  // Records the loss of the next step. False if it has exploded: it is not finite, or the smoothed loss is over four
  // times its minimum.
  bool take(double loss);

  const std::vector<double>& losses() const { return losses_; }
  // Their running means a_t / (1 - 0.98^(t + 1)), a_t = 0.98 a_(t-1) + 0.02 loss_t, as in fastai.
  const std::vector<double>& smoothed() const { return smoothed_; }

  // The step of the smoothed loss's steepest fall, measured over a window from a twentieth of all steps before it to a
  // twentieth after it. The window lies after the first tenth, because early means average few losses, and before the
  // minimum. None if the loss never falls.
  std::optional<int> steepest() const;
  int least() const;  // the step of the smallest smoothed loss; 0 without losses

 private:
  const double from_, to_;
  const int steps_;
  double sum_ = 0, decayed_ = 1;
  std::vector<double> losses_, smoothed_;
};

}  // namespace isonorm::training
