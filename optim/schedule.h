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

}  // namespace isonorm::optim
