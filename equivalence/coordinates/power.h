// What a comparison of two tensors can see: how far they are apart, and from which factor on a wrong one would have shown.
#pragma once

#include <string>

#include "equivalence/coordinates/pairs.h"

namespace isonorm::equivalence {

// How far a tensor x is from its reference r, and how far rounding takes it.
struct Offset {
  double entry = 0;   // max |x - r| / scale
  double factor = 0;  // |<x - r, r>| / <r, r>: x is 1 +- so much times r, and something across it
};

// Whether a factor of it can show: not where it is 0, or rounding noise, whose scale is another one.
bool has_factor(const Pair& pair);
// The factor is 0 where it has none. NaN where there is one.
Offset offset(const Pair& pair);
Offset larger(const Offset& a, const Offset& b);

// Where x is `off` from r, and may be `limit`: the least f from which on (1 + f) x is certain to be further off.
double seen_from(double off, double limit);

// "a factor of 1 + 2.2e-05 of any tensor would have shown"; the number is rounded up.
std::string would_have_shown(double factor, const std::string& of = "any tensor");

}  // namespace isonorm::equivalence
