// Are two checkpoints one function up to a rotation of the residual stream (streams/rotation.h)? Finds the rotation
// from their tensors, and compares every entry with it.
#pragma once

#include <string>

#include "equivalence/verify/verify.h"

namespace isonorm::equivalence {

struct RotationComparison : StateComparison {
  std::string found;  // a line about the rotation that was found
};

// The rows x_n of A's writers and readers and the rows y_n of B's must satisfy y_n = x_n Q. Each row is divided by the
// rounding error of its entries, and Q is the orthogonal matrix nearest to the least-squares solution (orthogonal
// Procrustes, Schoenemann 1966, to first order in the rounding). A direction that no row of A has, such as the vector
// of ones in rms_norm, is mapped to the direction that B lacks. Then A is compared with B in B's coordinates. The
// states need not fit into memory: first one tensor of each is read at a time, then compare_states() reads both in
// pieces.
//
// Let sigma be the smallest singular value of the rows, not counting such a direction. An entry of x Q is off by a sum
// of the N d roundings, with coefficients whose squares add up to |x|^2 / (2 sigma^2) for each of A and B. 8 |x| /
// sigma is allowed: a sum of independent roundings exceeds it with a probability below 2 exp(-32) (Hoeffding). In
// addition, 2 sqrt(d) roundings of f64 times the condition number of the squares are allowed.
//
// If Q cannot be found, the entries differ, and the reason says why. readers: also compares the readers' outputs for
// random rows; then mapped tensors must be finite. Throws with the reason of not_rotatable(), and if a state does not
// fit its plan.
RotationComparison compare_up_to_rotation(const LazyState& a, streams::Plan plan_a, const LazyState& b,
                                          streams::Plan plan_b, bool readers = false);

// The reason why, by their plans alone, no rotation can connect two models; empty if one can.
std::string not_rotatable(const streams::Plan& a, const streams::Plan& b);

}  // namespace isonorm::equivalence
