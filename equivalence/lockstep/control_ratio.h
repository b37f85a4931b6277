// Controls against controls: by which factor does a training that differs by rounding alone leave the others?
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// What a bound f D_c(t) + g eps has to be so that the deviations of a proof's runs stay within it.
struct Needed {
  double factor = 0;  // the least f, with g as criterion.h has it
  double floor = 0;   // the least g, with f as criterion.h has it
};

// The factor and the floor of today's bound, read from criterion.h: 30 and 64.
double bound_factor(DType dtype);
double bound_floor(DType dtype);

// Of one run: the largest over steps and over loss, gradient and weights. `control` is D_c(t), as running_maximum gives
// it. Infinite where a deviation beyond the floor meets controls of 0, or is NaN.
Needed needed(const Deviations& run, const Deviations& control, DType dtype);

using DrawnProof = std::array<Needed, 3>;  // by run
Needed worst(const DrawnProof& proof);

// `proofs` of them, each of so many controls and three runs, no two the same, drawn from `paths`: what the runs need.
// Where `forms` has paths (three groups of one size, one after the other), the runs are one of each group instead.
// Proofs share paths: however many are drawn, they know no more than the paths do, and the error of what they show is
// that between disjoint sets of paths. Proof i is the same whatever their number.
std::vector<DrawnProof> drawn_proofs(std::span<const RunResult> paths, std::span<const RunResult> forms, int controls,
                                     int proofs, uint64_t seed, DType dtype);

}  // namespace isonorm::equivalence
