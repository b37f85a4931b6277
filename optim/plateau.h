// ReduceOnPlateau: a learning rate that falls when the loss stops improving. Unlike a schedule it has a state, which
// belongs in a checkpoint.
#pragma once

#include <cstdint>
#include <limits>

#include "core/tensor_map.h"

namespace isonorm::optim {

struct PlateauOptions {
  double factor = 0.1;  // new rate = factor x old rate
  int patience = 10;    // consecutive losses without improvement that are tolerated
  // A loss below best x (1 - threshold) is an improvement; if `relative` is false, a loss below best - threshold.
  double threshold = 1e-4;
  bool relative = true;
  int cooldown = 0;   // losses after a reduction that are ignored
  double min_lr = 0;  // the rate does not fall below it
  double eps = 1e-8;  // a reduction by eps or less is skipped
};

// The rate of torch.optim.lr_scheduler.ReduceLROnPlateau in mode "min". Use it as the rate of a Loop whose callback
// calls take():
//
//   optim::ReduceOnPlateau plateau(1e-2, {.factor = 0.5, .patience = 2});
//   training::Loop loop(step, batch, std::ref(plateau));
//   loop.every(100, [&](const training::TrainingStep& s) { return plateau.take(test_loss()), true; });
//   training::SavedTraining saved("run.ckpt", {{"net", net}, {"opt", opt}, {"plateau", plateau}});
//
// To combine it with a schedule, multiply: [&](int64_t step) { return schedule(step) * plateau.factor(); }.
class ReduceOnPlateau {
 public:
  // Throws if lr is not above 0, threshold, min_lr or eps is negative, one of these is not finite, factor or a relative
  // threshold is outside [0, 1), or patience or cooldown is negative.
  explicit ReduceOnPlateau(double lr, PlateauOptions options = {});
  // Not copyable: a loop with a copy would not see the rate fall. Pass std::ref(plateau).
  ReduceOnPlateau(const ReduceOnPlateau&) = delete;
  ReduceOnPlateau& operator=(const ReduceOnPlateau&) = delete;

  // Takes a loss. Returns true if the rate fell. NaN is no improvement.
  bool take(double loss);

  double lr() const { return lr_; }                  // the current rate
  double operator()(int64_t) const { return lr_; }   // lr(), whatever the step
  double factor() const { return lr_ / first_lr_; }  // lr() / the rate at construction

  // "lr", "best" (f64) and "bad", "cooldown" (i64): the rate, the lowest loss, the number of losses since then, and the
  // number of losses still to ignore.
  TensorMap state_dict() const;
  // Loads this state; training continues with the same bits. Throws, and changes nothing, if a name is missing or
  // unknown, or if a number has another dtype or is out of range.
  void load_state_dict(const TensorMap& state);

 private:
  PlateauOptions options_;
  double first_lr_, lr_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t bad_ = 0, cooldown_ = 0;
};

}  // namespace isonorm::optim
