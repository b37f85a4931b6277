// The criterion: when two trainings count as equivalent. Pure functions of deviations per step. Rounding differences
// grow during training, so a deviation is judged against controls that differ by rounding alone (docs/normalization.md,
// "How equal is equal"). A bound can detect a mistake only while it is below the deviations of negative controls: up to
// the horizon.
#pragma once

#include <span>

#include "equivalence/judge/run_result.h"
#include "io/number_format.h"

namespace isonorm::equivalence {

// Steps of the negative controls (at a constant rate, against a reference of the same steps).
inline constexpr int kNegativeSteps = 20;

// Throws, naming the command `verb`, if the stream is too narrow for a verdict: normalised rows of two centred entries
// are always 1 and -1.
void check_wide_enough(int64_t width, const char* verb);

// 30 D_c + 64 eps(format): the largest deviation that rounding explains if the controls reach D_c.
double bound(double control, NumberFormat format);

// The largest bound that detects mistakes, whatever a negative control reaches: 1e-5 in f64, 1e-2 in coarser formats.
double largest_bound(NumberFormat format);

// The largest D(t) / bound(D_c(t)) of loss, gradient and weights over all steps. NaN if a deviation is NaN, or if run
// and control are empty or of different length.
double share_of_bound(const Deviations& run, const Deviations& control, DType dtype);

// How far negative controls get: for each quantity the minimum over them of the largest deviation within their first
// kNegativeSteps steps (up to the first that is not finite). 0 if there is none.
Magnitudes reach(std::span<const RunResult> negative);

// The last step up to which bound(D_c(t)) is below a third of `reach` in each quantity, and below 1e-5 in f64, 1e-2 in
// f32. A third: at the horizon a negative control still exceeds the bound by a factor of three.
Horizon horizon(const Deviations& control, const Magnitudes& reach, DType dtype);

// True if the horizon is enough for a verdict: kNegativeSteps steps, or all steps of a shorter run.
bool carries(const Horizon& horizon, size_t steps);

// "from step 44 on rounding alone moves weights by more than 2.0e-04 (30 times the controls)"; empty if the horizon is
// the end of the run.
std::string end_of(const Horizon& horizon);

// "detectable up to step 200: 3.5e-14 in the loss, 5.7e-13 in gradients, 5.4e-13 in weights"
std::string detectable_text(const Horizon& horizon);

// The margin of a negative control: D > separation * D_c after its last step. 1e6 in f64, 100 in f32: relative
// deviations cannot grow far beyond 1, and in f32 the controls begin at 1e-7. Measured over ViT and GPT, four
// optimizers, learning rates 1e-3 to 0.05 and three seeds, after 20 steps in f32: D_c is 1e-7 to 2e-7 for the loss,
// 1e-6 to 5e-5 for gradients, 3e-7 to 3e-4 for weights (Adam divides by gradients that are rounding alone); the
// negative controls reach 6e-5 to 7e-2, 0.1 to 4, and 2e-3 to 9. The narrowest ratios were 270 (loss, projected_once,
// sgd) and 450 (weights, projected_once, adamw). In f32 1e6, and even 1e3, is therefore out of reach. The least
// difference of 1e-5 holds in both dtypes.
double separation(DType dtype);

// A run that is another function from the start has to exceed the bound by this factor.
inline constexpr double kLeastExcess = 100;

// Largest loss deviation at the first step of a negative control that starts as the same function. 1e-12 in f64; 16 eps
// = 1.9e-6 in f32, where 1e-12 is far below one unit in the last place (measured: at most 0.8 eps).
double start_tolerance(DType dtype);

// The largest deviations of a run, NaN if one is NaN.
Magnitudes largest(const Deviations& run);

// D_c(t) for loss, gradient and weight: the largest deviation of any control up to step t. NaN if a control has NaN at
// or before t; empty if there is no control or their lengths differ.
Deviations running_maximum(std::span<const RunResult> controls);

// Fills largest deviations, horizon, verdict, as_expected and reason of a run from its `expected`, `deviations`,
// `control` and `reach`.
//   different  D(t) > bound(D_c(t)) at any step, for loss, gradient or weight, provided that the bound is below 1e-5
//              (f32: 1e-2), or below 1 and `reach`. Beyond that, in chaos, honest runs break it, too. Also if D(t) is
//              NaN and the bound is finite.
//   equivalent D(t) <= bound(D_c(t)) everywhere, and the horizon carries the verdict
//   undecided  all else: an empty run, controls of another length or that never moved, a horizon too near
//
// An expected `different` counts only if the run began as the same function (start_tolerance) and exceeds separation *
// D_c and 1e-5 in each quantity: gradients and weights at the last step, the loss at any step (it is a single number,
// and may happen to cross the reference's loss). A run without `same_start` is another function, or has another
// gradient, from the start. It has to exceed kLeastExcess times the bound, and does not count for `reach`.
//
// A run that equals the reference to the last bit throughout was compared with itself: equivalent, but not as expected,
// unless it may be identical.
void judge(RunResult& run, DType dtype);

// Judges each of `runs`, which have their controls, with the same reach. Returns the worst RunResult::agreement();
// undecided if there is no run.
Verdict judge(std::span<RunResult> runs, const Magnitudes& reach, DType dtype);

}  // namespace isonorm::equivalence
