// The differences that a comparison of two tensors detects: how far apart they are, and the smallest wrong factor that
// would have been seen.
#pragma once

#include <string>

#include "equivalence/judge/pairs.h"

namespace isonorm::equivalence {

// How far a tensor x is from its reference r, or how far rounding may take it.
struct Offset {
  double entry = 0;   // max |x - r| / scale
  double factor = 0;  // |<x - r, r>| / <r, r>: x is (1 +- factor) r, and a part orthogonal to r
};

// True if a wrong factor of the tensor can be seen: not if the tensor is 0, or rounding noise, whose scale is another
// one.
bool has_factor(const Pair& pair);
// factor is 0 if the pair has none (has_factor). NaN if an entry is NaN.
Offset offset(const Pair& pair);
Offset larger(const Offset& a, const Offset& b);

// x is `off` from r and may be `limit` from r. Returns the smallest f such that (1 + g) x is certain to exceed the
// limit if g >= f.
double detectable_factor(double off, double limit);

// "detectable: a factor of 1 + 2.2e-05 of any tensor"; the number is rounded up.
std::string detectable_text(double factor, const std::string& of = "any tensor");

}  // namespace isonorm::equivalence
