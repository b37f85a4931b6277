// The smallest fault that the trajectories of a certificate can see.
#pragma once

#include "lab/probes/trajectory.h"

namespace isonorm::equivalence {

enum class Fault {
  eps,    // eps of the norms, times 1 + x
  entry,  // one entry of a weight, moved by x times its tensor's largest
  row,    // one row of a weight, times 1 + x
};
inline constexpr Fault kFaults[] = {Fault::eps, Fault::entry, Fault::row};

// "another eps, (1 + x) 1e-5", "one entry of a weight, by x of the largest", "one row of a weight, times 1 + x".
const char* description(Fault fault);

struct Resolution {
  Fault fault;
  DType dtype;
  Architecture architecture;
  double smallest = 0;  // every fault from this x on, in steps of 4, left the bound; NaN if none did
};

// Architectures that differ in model, width, norms and activation, which influence how small a visible fault is.
std::vector<Architecture> resolved_architectures();

// Trains rms_norm with faults of x = eps(dtype) 4^k, k = 0, 1, ..., 11 (Fault::eps: k from 5 on) for kNegativeSteps
// steps, together with Pre-LN and its controls.
Resolution smallest_fault(Fault fault, const Architecture& a, DType dtype, int controls, uint64_t seed,
                          const Continue& go_on = {});

// The largest `smallest` of this fault and dtype: such a fault is seen in each architecture.
double seen_everywhere(std::span<const Resolution> all, Fault fault, DType dtype);

}  // namespace isonorm::equivalence
