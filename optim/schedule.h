// Learning-rate schedules: pure functions of the step, so that the step is all the state there is.
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
  int64_t steps = 0;   // of the whole training; to be given where the decay is linear or cosine
  Decay decay = Decay::cosine;
  double floor = 0;  // the rate that the decay runs towards

  // The rate of step t = 0, 1, ...: peak (t + 1) / warmup while t < warmup, so that the first step is not lost; after
  // that, with x = min(1, (t - warmup) / (steps - warmup)): constant peak, linear peak + (floor - peak) x, cosine floor
  // + (peak - floor) (1 + cos pi x) / 2 (Loshchilov and Hutter, "SGDR", ICLR 2017), inverse_sqrt max(floor,
  // peak sqrt(max(1, warmup) / (t + 1))) (Vaswani et al., 1706.03762, equation 3). Throws where step < 0, steps is
  // missing, warmup is outside [0, steps], or a rate is negative or not finite.
  double lr(int64_t step) const;
  double operator()(int64_t step) const { return lr(step); }
};

// torch.optim.lr_scheduler.StepLR.
struct StepDecay {
  double peak = 1e-3;
  int64_t every = 0;    // steps at one rate
  double factor = 0.1;  // of one rate to the next

  // peak factor^floor(t / every) at step t = 0, 1, ... Throws if step < 0, every < 1, or peak or factor is negative or not finite.
  double lr(int64_t step) const;
  double operator()(int64_t step) const { return lr(step); }
};

// One cycle (Smith and Topin, 1708.07120), as torch.optim.lr_scheduler.OneCycleLR has it, with cosines.
struct OneCycle {
  double peak = 1e-3;
  int64_t steps = 0;          // of the whole training
  double rise = 0.3;          // part of the steps in which the rate rises
  double start_divisor = 25;  // the first rate is peak / start_divisor
  double end_divisor = 1e4;   // the last rate is the first one / end_divisor

  // From the first rate to the peak, which is reached at step m = rise steps - 1, then to the last rate at step steps - 1, both along
  // a + (b - a) (1 - cos pi x) / 2; after that the last rate. Throws if step < 0, steps < 1, rise is outside of [0, 1], peak is
  // negative or not finite, or a divisor is not a finite number above 0.
  double lr(int64_t step) const;
  double operator()(int64_t step) const { return lr(step); }
};

}  // namespace isonorm::optim
