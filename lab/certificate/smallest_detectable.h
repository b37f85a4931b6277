// The smallest mistake that the trajectories of a certificate detect.
#pragma once

#include "equivalence/lockstep/negative_control.h"
#include "lab/probes/trajectory.h"

namespace isonorm::equivalence {

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
