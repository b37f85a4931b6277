// Are two checkpoints one function up to a rotation of the residual stream (streams/rotation.h)? The rotation is found from
// their tensors, and with it every entry is compared.
#pragma once

#include <string>

#include "equivalence/verify/verify.h"

namespace isonorm::equivalence {

struct RotationComparison : StateComparison {
  std::string found;  // a line about the rotation
};

// Rows x_n of the writers and readers of A, y_n of B, must be y_n = x_n Q. Q is the orthogonal matrix nearest to the solution of
// least squares, rows counted in units of what rounding may do to an entry of them (orthogonal Procrustes, Schoenemann 1966, to
// first order in that); a direction that no row has, such as 1 in rms_norm, goes to the one that B has not. Then
// A is compared in those coordinates with B. The states need not fit into memory: first a tensor of each is read at a time, then
// pieces of both are (compare_states). With sigma the smallest singular value of the rows that is none of
// such a direction, an entry of x Q is off by a sum of the N d roundings with coefficients whose squares add up to |x|^2 /
// (2 sigma^2) for each of the two; 8 |x| / sigma is allowed, which a sum of independent roundings reaches with a probability
// below 2 exp(-32) (Hoeffding), and 2 sqrt(d) roundings of f64 times the condition of the squares.
// Where Q is not to be found, the entries differ, and the reason says why. With `readers`, what they see of random rows is
// compared too, and what is mapped must be finite. Throws as not_rotatable() says, and where a state does not fit its layout.
RotationComparison compare_up_to_rotation(const LazyState& a, streams::Placement layout_a, const LazyState& b,
                                          streams::Placement layout_b, bool readers = false);

// Why no rotation can connect two models by their layouts alone; nothing where one can.
std::string not_rotatable(const streams::Placement& a, const streams::Placement& b);

}  // namespace isonorm::equivalence
