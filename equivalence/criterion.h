// The criterion: when two trainings count as the same. Pure functions of deviations per step. Rounding differences grow
// during training, so a deviation is judged against controls that differ by nothing but rounding
// (normalization.md 5.4).
#pragma once

#include <span>

#include "equivalence/result.h"

namespace isonorm::equivalence {

// 30 D_c + 64 eps(dtype): the largest deviation that rounding explains where the controls reach D_c.
double bound(double control, DType dtype);

// The largest D(t) / bound(D_c(t)) of loss, gradient and weights over all steps. NaN where there is one, or where run
// and control are empty or of different length.
double share_of_bound(const Deviations& run, const Deviations& control, DType dtype);

// The margin of a negative control: D > separation * D_c after its last step. 1e6 in f64, 100 in f32: relative
// deviations cannot grow far beyond 1, and in f32 the controls begin at 1e-7. Measured over ViT and GPT, four
// optimizers, learning rates 1e-3 to 0.05 and three seeds, after 20 steps in f32: D_c 1e-7 to 2e-7 for the loss, 1e-6
// to 5e-5 for gradients, 3e-7 to 3e-4 for weights (Adam divides by gradients that are rounding alone); the negative
// controls 6e-5 to 7e-2, 0.1 to 4, 2e-3 to 9. The narrowest ratios were 270 (loss, projected_once, sgd) and 450
// (weights, projected_once, adamw): 1e6, and even 1e3, is out of reach there, and 1e-5 holds in both.
double separation(DType dtype);

// Largest loss deviation at the first step with which a negative control still starts as the same function. 1e-12 in
// f64; 16 eps = 1.9e-6 in f32, where 1e-12 lies far below one unit in the last place (measured: at most 0.8 eps).
double start_tolerance(DType dtype);

// D_c(t) for loss, gradient and weight: the largest deviation of any control up to step t. NaN where a control has NaN
// at or before t; empty where there is no control or their lengths differ.
Deviations running_maximum(std::span<const RunResult> controls);

// Fills largest deviations, observed, as_expected and reason of a run from its `expected`, `deviations` and `control`.
//   same       at every step D(t) <= bound(D_c(t)), for loss, gradient and weight each; NaN, an empty run, controls of
//   another length or
//              controls that never moved are never the same
//   different  otherwise. Where it is expected, it counts only if the run began as the same function (start_tolerance)
//   and exceeds separation * D_c and 1e-5 in each of the three: gradients and weights at its last step, the loss at any
//   step (a single number, it may happen to pass that of the reference).
// A form other than layer_norm that equals the reference to the last bit throughout was compared with itself: same, but
// not as expected.
void judge(RunResult& run, DType dtype);

// Fills control and the largest deviations of the controls, gives every run without a `control` of its own that of the
// proof, judges all runs and sets `equivalent`: there is at least one run, none failed, and the proof was not
// interrupted.
void conclude(ProofResult& proof);

}  // namespace isonorm::equivalence
