// The criterion: when two trainings count as the same. Pure functions of deviations per step. Rounding differences grow
// during training, so a deviation is judged against controls that differ by nothing but rounding
// (docs/normalization.md, "How equal is equal"). A bound has power only while it is below what a wrong training shows: up to the horizon.
#pragma once

#include <span>

#include "equivalence/lockstep/result.h"
#include "io/number_format.h"

namespace isonorm::equivalence {

// Steps of the negative controls (at a constant rate, against a reference of the same steps).
inline constexpr int kNegativeSteps = 20;

// Throws, as `verb`, where the stream is too narrow for a verdict: of two centred entries there are but two norms.
void check_width(int64_t width, const char* verb);

// 30 D_c + 64 eps(format): the largest deviation that rounding explains if the controls reach D_c.
double bound(double control, NumberFormat format);

// The largest bound that has power, whatever a wrong training reaches: 1e-5 in f64, 1e-2 in coarser formats.
double largest_bound(NumberFormat format);

// The largest D(t) / bound(D_c(t)) of loss, gradient and weights over all steps. NaN where there is one, or where run
// and control are empty or of different length.
double share_of_bound(const Deviations& run, const Deviations& control, DType dtype);

// What wrong trainings reach: for each quantity the least, over them, of the largest deviation within their first
// kNegativeSteps steps (up to the first that is not finite). 0 where there is none.
Magnitudes reach(std::span<const RunResult> wrong);

// The last step up to which bound(D_c(t)) lies below a third of `reach` in each quantity, and below 1e-5 in f64, 1e-2
// in f32. A third: at the horizon a wrong training still leaves the bound by a factor of three.
Horizon horizon(const Deviations& control, const Magnitudes& reach, DType dtype);

// Whether a horizon carries a verdict: kNegativeSteps steps, or all of a shorter run.
bool carries(const Horizon& horizon, size_t steps);

// "from step 44 on rounding alone moves weights by more than 2.0e-04 (30 times the controls)"; empty where the horizon
// is the end of the run.
std::string end_of(const Horizon& horizon);

// "a difference of 3.5e-14 in the loss, 5.7e-13 in gradients or 5.4e-13 in weights would have shown", up to the horizon.
std::string would_have_shown(const Horizon& horizon);

// The margin of a negative control: D > separation * D_c after its last step. 1e6 in f64, 100 in f32: relative
// deviations cannot grow far beyond 1, and in f32 the controls begin at 1e-7. Measured over ViT and GPT, four
// optimizers, learning rates 1e-3 to 0.05 and three seeds, after 20 steps in f32: D_c 1e-7 to 2e-7 for the loss, 1e-6
// to 5e-5 for gradients, 3e-7 to 3e-4 for weights (Adam divides by gradients that are rounding alone); the negative
// controls 6e-5 to 7e-2, 0.1 to 4, 2e-3 to 9. The narrowest ratios were 270 (loss, projected_once, sgd) and 450
// (weights, projected_once, adamw): 1e6, and even 1e3, is out of reach there, and 1e-5 holds in both.
double separation(DType dtype);

// How far a run that is another function from the start has to leave the bound: to this multiple of it.
inline constexpr double kLeastExcess = 100;

// Largest loss deviation at the first step with which a negative control still starts as the same function. 1e-12 in
// f64; 16 eps = 1.9e-6 in f32, where 1e-12 lies far below one unit in the last place (measured: at most 0.8 eps).
double start_tolerance(DType dtype);

// D_c(t) for loss, gradient and weight: the largest deviation of any control up to step t. NaN where a control has NaN
// at or before t; empty where there is no control or their lengths differ.
Deviations running_maximum(std::span<const RunResult> controls);

// Fills largest deviations, horizon, observed, as_expected and reason of a run from its `expected`, `deviations`,
// `control` and `reach`.
//   different  D(t) > bound(D_c(t)) at any step, for loss, gradient or weight, as long as that bound lies below 1e-5
//              (f32: 1e-2), or below 1 and what wrong trainings reach: beyond, in chaos, honest runs break it too. Or
//              D(t) is NaN where the bound is finite.
//              Where it is expected, it counts only if the run began as the same function (start_tolerance) and
//              exceeds separation * D_c and 1e-5 in each of the three: gradients and weights at its last step, the
//              loss at any step (a single number, it may happen to pass that of the reference). A run that is another
//              function or has another gradient from the start (not `same_start`) has to reach kLeastExcess times the bound,
//              and is none of the wrong trainings that `reach` is of.
//   same       D(t) <= bound(D_c(t)) everywhere, and the horizon carries the verdict
//   undecided  all else: an empty run, controls of another length or that never moved, a horizon too near
// A run that equals the reference to the last bit throughout was compared with itself: same, but not as expected,
// unless it may be identical.
void judge(RunResult& run, DType dtype);

// Judges each of `runs`, which have their controls, with the same reach. different: one came out neither as expected nor
// undecided; same: there is at least one, and all are as expected; else undecided.
Verdict judge(std::span<RunResult> runs, const Magnitudes& reach, DType dtype);

// Fills control, the largest deviations of the controls, reach and horizon (from the runs that are expected to be
// different), gives every run without a `control` of its own that of the proof and judges all runs. The verdict of a
// proof that was interrupted is undecided.
void conclude(ProofResult& proof);

}  // namespace isonorm::equivalence
