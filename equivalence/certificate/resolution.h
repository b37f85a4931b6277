// The smallest fault that the trajectories of a certificate show.
#pragma once

#include "equivalence/probes/trajectory.h"

namespace isonorm::equivalence {

enum class Fault {
  eps,    // of the norms, (1 + x) times what it should be
  entry,  // of a weight, moved by x of its tensor's largest
  row,    // of a weight, (1 + x) times what it should be
};
inline constexpr Fault kFaults[] = {Fault::eps, Fault::entry, Fault::row};

// "another eps, (1 + x) 1e-5", "one entry of a weight, by x of the largest", "one row of a weight, times 1 + x".
const char* description(Fault fault);

struct Resolution {
  Fault fault;
  DType dtype;
  Architecture architecture;
  double smallest = 0;  // x from which on, in steps of 4, every fault left the bound; NaN where none did
};

// Architectures that differ in what makes a fault small: model, width, norms, activation.
std::vector<Architecture> resolved_architectures();

// Trains rms_norm with faults of x = eps(dtype) 4^k, k = 0, 1, ..., 11 (of eps: k from 5 on) for kNegativeSteps steps,
// beside Pre-LN and its controls.
Resolution smallest_fault(Fault fault, const Architecture& a, DType dtype, int controls, uint64_t seed,
                          const Continue& go_on = {});

// The largest of `all` in this fault and dtype: what is seen in each of the architectures.
double seen_everywhere(std::span<const Resolution> all, Fault fault, DType dtype);

}  // namespace isonorm::equivalence
