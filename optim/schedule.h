// Learning-rate schedules: pure functions of the step, so that the step is their only state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/tensor_map.h"

namespace isonorm::optim {

enum class Decay { constant, linear, cosine, inverse_sqrt };
inline constexpr const char* kDecayNames[] = {"constant", "linear", "cosine", "inverse_sqrt"};
constexpr const char* name_of(Decay d) { return kDecayNames[static_cast<size_t>(d)]; }

struct Schedule {
  double peak = 1e-3;
  int64_t warmup = 0;  // steps until the peak is reached
  int64_t steps = 0;   // of the whole training; required for linear and cosine decay
  Decay decay = Decay::cosine;
  double floor = 0;  // the rate that the decay approaches

  // The rate of step t = 0, 1, ...: peak (t + 1) / warmup while t < warmup, so that the first step is not lost; after
  // that, with x = min(1, (t - warmup) / (steps - warmup)): constant peak, linear peak + (floor - peak) x, cosine floor
  // + (peak - floor) (1 + cos pi x) / 2 (Loshchilov and Hutter, "SGDR", ICLR 2017), inverse_sqrt max(floor, peak
  // sqrt(max(1, warmup) / (t + 1))) (Vaswani et al., 1706.03762, equation 3). Throws if step < 0, steps is missing,
  // warmup is outside [0, steps], or a rate is negative or not finite.
  double lr(int64_t step) const;
  double operator()(int64_t step) const { return lr(step); }
};

// Multiplies the rate by gamma after every step_size steps, like torch.optim.lr_scheduler.StepLR:
// peak gamma^floor(t / step_size) at step t = 0, 1, ... Throws if step < 0, step_size < 1, or peak or gamma is negative
// or not finite.
struct StepDecay {
  double peak = 1e-3;  // the rate of the first step
  int64_t step_size = 0;
  double gamma = 0.1;

  double lr(int64_t step) const;
  double operator()(int64_t step) const { return lr(step); }
};

// One cycle, like torch.optim.lr_scheduler.OneCycleLR with two phases (Smith and Topin, 1708.07120): from
// peak / div_factor to peak at step pct_start steps - 1, then to peak / (div_factor final_div_factor) at the last step,
// and constant after it. Each phase is half a cosine, or a line. Throws if step < 0, steps < 1, pct_start is outside
// [0, 1], peak is negative or not finite, or a factor is not a finite number above 0.
struct OneCycle {
  double peak = 1e-3;
  int64_t steps = 0;       // of the whole training
  double pct_start = 0.3;  // share of the steps in which the rate rises
  double div_factor = 25, final_div_factor = 1e4;
  bool linear = false;

  double lr(int64_t step) const;
  double operator()(int64_t step) const { return lr(step); }
};

// ReduceOnPlateau: a learning rate that falls when the loss stops improving. Unlike a schedule it has a state, which
// belongs in a checkpoint.

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
  // Throws if lr is not above 0, threshold, min_lr or eps is negative, any is not finite, factor or a relative
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
