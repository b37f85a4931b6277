// Right and wrong norms, and the mark of a test that has to tell them apart.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/norm_under_test.h"

namespace course {

struct Candidate {
  std::string name;
  NormUnderTest norm;
};
using Candidates = std::vector<Candidate>;

// The normalisation alone, without gain and bias: x [..., n] and eps -> x^ [..., n]; differentiable.
using Normalise = std::function<Tensor(const Tensor& x, double eps)>;
// The whole norm: y [..., n] from x, gain, bias and eps; differentiable.
using Formula = std::function<Tensor(const Tensor& x, const NormWeights& w)>;

// A forward with the backward that autodiff derives from it.
NormUnderTest differentiated(const Formula& f);
// The same for x^ gain + bias.
NormUnderTest affine(const Normalise& f);
// The right forward with another backward.
NormUnderTest with_backward(const Normalise& f, decltype(NormUnderTest::backward) backward);

// Faults that any norm can have, built into the right norm `f`.
Candidates common_faults(const Normalise& f);

Candidates right_layer_norms(), wrong_layer_norms();
Candidates right_crms_norms(), wrong_crms_norms();

// The share of `wrong` that the test rejects; 0 if it rejects any in `right`. Prints the first right norm that is rejected,
// or at most five wrong ones that are accepted: the first ones of `wrong`, so that marking again shows no others.
double share_rejected(const std::function<bool(const NormUnderTest&)>& accepts, const Candidates& right,
                      const Candidates& wrong);

}  // namespace course
