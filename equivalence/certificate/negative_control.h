// The negative controls of the certificate: trainings that are wrong in one respect each, and have to come out
// different. Each guards a claim, which would be untrue had it come out the same.
#pragma once

#include <span>

#include "equivalence/lockstep/forged.h"
#include "equivalence/probes/trajectory.h"

namespace isonorm::equivalence {

struct NegativeControl {
  const char* name;          // "another eps"
  const char* claim;         // "eps belongs to the function"
  const char* architecture;  // its name
  const char* variant;       // how the run stores its weights: alias
  bool same_start;           // it is the reference's function at step 1, and leaves it by training alone
  Forgery forgery = Forgery::none;
  void (*both)(training::TrainingOptions&) = nullptr;  // what reference, controls and run have beyond the architecture
  void (*run)(training::TrainingOptions&) = nullptr;   // what only the run has
  Device device = kCpu;                                // of reference, controls and run
};

std::span<const NegativeControl> negative_controls();

struct NegativeResult {
  NegativeControl control;
  DType dtype;
  RunResult run = {};
  double excess = 0;  // largest D(t) / bound(t)
  // Whether it has to show in this dtype: in f64 always; in f32 where what it does in f64 is twice what is asked for.
  // Rounding hides the others, and they may come out as they like.
  bool has_power = true;
  double foreseen = NAN;     // f32: D(t) of f64, as a multiple of what is asked for: has_power from 2 on
  bool as_expected = false;  // it came out different: by criterion.h's margin where it starts as the same function,
                             // else by kLeastExcess; or it has no power
};

// 20 steps, as train_architecture() trains. `in_f64`: of a dtype other than f64, what the same control did there.
NegativeResult run_negative(const NegativeControl& n, DType dtype, int controls, uint64_t seed,
                            const NegativeResult* in_f64 = nullptr, const Continue& go_on = {});

// Draws the verdict from deviations and controls.
void judge(NegativeResult& result);

}  // namespace isonorm::equivalence
