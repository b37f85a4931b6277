// Norms, right and wrong, and the mark of a test that has to tell them apart.
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

// A norm in its parts: x^ [..., n] from x and eps, without gain and bias; differentiable.
using Normalise = std::function<Tensor(const Tensor& x, double eps)>;
// y [..., n] from all; differentiable.
using Formula = std::function<Tensor(const Tensor& x, const NormWeights& w)>;

// The forward with the backward that autodiff has for it.
NormUnderTest differentiated(const Formula& f);
// The same of x^ gain + bias.
NormUnderTest affine(const Normalise& f);
// A right forward with another backward.
NormUnderTest with_backward(const Normalise& f, decltype(NormUnderTest::backward) backward);

// Faults that any norm can have, put into the right one `f`.
Candidates common_faults(const Normalise& f);

Candidates right_layer_norms(), wrong_layer_norms();
Candidates right_crms_norms(), wrong_crms_norms();

// The share of `wrong` that the test rejects, 0 where it rejects one of `right`; prints what decided.
double share_rejected(const std::function<bool(const NormUnderTest&)>& accepts, const Candidates& right,
                      const Candidates& wrong);

}  // namespace course
