// Lab 3: LayerNorm by hand. 5 hours.
//
// Goal: derive a backward from its formula, and write tests that no wrong norm survives.
// Read: docs/normalization.md, "The norms"; docs/workshop.md up to "What a step is worth".
// Do:   3_layer_norm.cpp, from top to bottom. Derive dx on paper before you write it.
// Hand in: 3_layer_norm.cpp.
//
// Half of the marks are for accepts_layer_norm(). It is given three right norms and 45 wrong ones that you do not see.
// Its mark is the share of wrong norms that it rejects, or 0 if it rejects a right one. The wrong norms are common
// mistakes. Two in three are right for one small random input: vary everything that support/norm_under_test.h promises.
// The marking names at most five wrong norms that survived. Write them yourself, make your test reject them, and hand in
// again.
#pragma once

#include "support/norm_under_test.h"

namespace course {

// y = (x - mean x) / sqrt(var x + eps) gain + bias, for each row of x [..., n]; var is the population variance.
Tensor layer_norm_forward(const Tensor& x, const NormWeights& w);

// With h = dy gain, c = x - mean x, s = 1 / sqrt(var x + eps) and x^ = c s:
//   dx = s (h - mean h - x^ mean(h x^)),  dgain = sum over the rows of dy x^,  dbias = sum over the rows of dy.
NormGradients layer_norm_backward(const Tensor& x, const NormWeights& w, const Tensor& dy);

// True if `norm` is LayerNorm, forward and backward, up to the rounding of f64. A tolerance of 1e-12 of the largest
// entry is enough if the mean is small.
bool accepts_layer_norm(const NormUnderTest& norm);

}  // namespace course
