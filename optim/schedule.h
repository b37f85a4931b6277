// Learning-rate schedules: pure functions of the step, so that the step is their only state.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace isonorm::optim
