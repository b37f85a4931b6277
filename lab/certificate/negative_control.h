// The negative controls of the certificate: trainings that are wrong in one respect each, and have to come out
// different. Each guards a claim, which would be false if the control came out the same.
#pragma once

#include <optional>
#include <span>

#include "equivalence/lockstep/negative_control.h"
#include "lab/certificate/branch_order.h"
#include "lab/probes/trajectory.h"

namespace isonorm::equivalence {

struct NegativeControlRow {
  const char* name;          // "another eps"
  const char* claim;         // "eps belongs to the function"
  const char* architecture;  // its name
  const char* variant;       // alias of the variant that stores the run's weights
  bool same_start;           // at step 1 it is the reference's function, and leaves it by training alone
  NegativeControl mistake = NegativeControl::none;
  void (*both)(training::TrainingOptions&) = nullptr;  // changes the options of reference, controls and run
  void (*run)(training::TrainingOptions&) = nullptr;   // changes the options of the run only
  std::optional<BranchOrder> order = {};               // of the run's branches
  Device device = kCpu;                                // of reference, controls and run
};

std::span<const NegativeControlRow> negative_controls();

struct NegativeControlResult {
  NegativeControlRow control;
  DType dtype;
  RunResult run = {};
  double excess = 0;  // largest D(t) / bound(t)
  // True if the control has to be detected in this dtype: always in f64, and in f32 if its effect in f64 is twice the
  // required one. Otherwise rounding hides it, and any verdict is accepted.
  bool detectable = true;
  double foreseen = NAN;     // f32: D(t) of f64, as a multiple of the required one: detectable from 2 on
  bool as_expected = false;  // it came out different: by criterion.h's margin if it starts as the same function,
                             // otherwise by kLeastExcess; or it need not be detected
};

// 20 steps, trained like train_architecture(). in_f64: for another dtype, the result of the same control in f64.
NegativeControlResult run_negative(const NegativeControlRow& n, DType dtype, int controls, uint64_t seed,
                                   const NegativeControlResult* in_f64 = nullptr, const Continue& go_on = {});

// Draws the verdict from deviations and controls.
void judge(NegativeControlResult& result);

}  // namespace isonorm::equivalence
