// Lab 6: CRMSNorm, and why the optimizer sees it. 6 hours.
//
// Goal: store a zero-mean stream in d - 1 coordinates, and see which training that changes.
// Read: docs/normalization.md, "The stream" and "When two trainings are one"; then run examples/10_step_one.
// Do:   6_crms_norm.cpp. Write the backward with tensor functions, without autodiff; derive the two metrics on paper.
// Hand in: 6_crms_norm.cpp.
//
// Half of the marks are for accepts_crms_norm(), as in lab 3: 48 wrong norms, and 0 marks if it rejects a right one. The
// marking names at most five that survived.
#pragma once

#include "support/norm_under_test.h"

namespace course {

// With d = n + 1, S = sum of the row: y = v / r gain + bias, r = sqrt((sum v^2 + S^2) / d + eps), for each row of v
// [..., n].
Tensor crms_norm_forward(const Tensor& v, const NormWeights& w);

// With h = dy gain: dv = h / r - (v + S) sum(h v) / (d r^3); dgain and dbias are sums over the rows.
NormGradients crms_norm_backward(const Tensor& v, const NormWeights& w, const Tensor& dy);

// The direction that descent must subtract from stored weights, in place of their gradient, to follow Pre-LN. D [d, d -
// 1] is the identity with a last row of -1. A writer's stored weight B [d - 1, in] has P W = D B. If db is its
// gradient, the direction is (D^T D)^-1 db.
Tensor writer_direction(const Tensor& db);
// If da is the gradient of a reader's stored weight A D [out, d - 1], the direction is da D^T D.
Tensor reader_direction(const Tensor& da);

// True if `norm` is CRMSNorm, forward and backward, up to the rounding of f64.
bool accepts_crms_norm(const NormUnderTest& norm);

}  // namespace course
