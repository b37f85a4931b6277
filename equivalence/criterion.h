// The criterion: when two trainings count as the same. Pure functions of deviations per step. Rounding differences grow
// during training, so a deviation is judged against controls that differ by nothing but rounding
// (normalization.md 5.4).
#pragma once

#include <span>

#include "equivalence/result.h"

namespace isonorm::equivalence {

// 30 D_c + 64 eps(dtype): the largest deviation that rounding explains where the controls reach D_c.
double bound(double control, DType dtype);

// The margin of a negative control: D >= separation * D_c. 1e6 in f64. In f32 controls reach 1e-6, and nothing bounded
// exceeds 1e6 times that, so it is 100 there.
double separation(DType dtype);

// Largest loss deviation at step 0 with which a negative control still starts as the same function: 1e-12, in f32 1e-5.
double start_tolerance(DType dtype);

// D_c(t) for loss, gradient and weight: the largest deviation of any control up to step t. NaN where a control has NaN
// at or before t; empty where there is no control or their lengths differ.
Deviations running_maximum(std::span<const RunResult> controls);

// Fills largest deviations, observed, as_expected and reason of a run from its `expected`, `deviations` and `control`.
//   same       at every step D(t) <= bound(D_c(t)), for loss, gradient and weight each; NaN, an empty run, controls of
//   another length or
//              controls that never moved are never the same
//   different  otherwise. Where it is expected, it counts only if the run began as the same function (start_tolerance)
//   and at its last
//              step exceeds separation * D_c and 1e-5 in each of the three.
// A form other than layer_norm that equals the reference to the last bit throughout was compared with itself: same, but
// not as expected.
void judge(RunResult& run, DType dtype);

// Fills control and the largest deviations of the controls, gives every run without a `control` of its own that of the
// proof, judges all runs and sets `equivalent`: there is at least one run, none failed, and the proof was not
// interrupted.
void conclude(ProofResult& proof);

}  // namespace isonorm::equivalence
