// The negative controls of the certificate: trainings that are wrong in one respect each, and have to come out
// different. Each guards a claim, which would be false if the control came out the same. Then the smallest mistakes that
// trainings detect.
#pragma once

#include <optional>
#include <span>

#include "equivalence/lockstep/negative_control.h"
#include "lab/probes/trajectory.h"

namespace isonorm::equivalence {

// Wrong orders at the end of a residual branch: the map of the stream before dropout and layer scale. It must be last:
// P W x has zero mean, but mask P W x and diag(scale) P W x have not, and P mask P W is not P mask W either.
enum class BranchOrder { map_first, map_first_and_last };

// Gives this order to the branches of a model that was put on a stream in raw storage.
void set_branch_order(nn::Module& model, BranchOrder order);

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

// The mistakes whose size is varied.
inline constexpr NegativeControl kSizedMistakes[] = {NegativeControl::eps, NegativeControl::entry,
                                                     NegativeControl::row};

// "another eps, (1 + x) 1e-5", "one entry of a weight, by x of the largest", "one row of a weight, times 1 + x".
const char* description(NegativeControl mistake);

struct SmallestDetectable {
  NegativeControl mistake;
  DType dtype;
  Architecture architecture;
  double smallest = 0;  // every size x from this one on, in steps of 4, left the bound; NaN if none did
};

// Architectures that differ in model, width, norms and activation, which influence how small a mistake is detected.
std::vector<Architecture> resolved_architectures();

// Trains rms_norm with the mistake at sizes x = eps(dtype) 4^k, k = 0, 1, ..., 11 (NegativeControl::eps: k from 5 on)
// for kNegativeSteps steps, together with Pre-LN and its controls.
SmallestDetectable smallest_detectable(NegativeControl mistake, const Architecture& a, DType dtype, int controls,
                                       uint64_t seed, const Continue& go_on = {});

// The largest `smallest` of this mistake and dtype: a mistake of this size is detected in each architecture.
double detectable_everywhere(std::span<const SmallestDetectable> all, NegativeControl mistake, DType dtype);

}  // namespace isonorm::equivalence
