// Pairs of tensors that should be equal: how far apart they are, the entry that is furthest off, and the smallest wrong
// factor that the comparison would have detected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm::equivalence {

struct Pair {
  std::string name;
  Tensor value, reference;  // of one shape
  double scale = 0;         // divides the differences; usually largest_entry(reference)
  int64_t first_row = 0;    // if the two are rows of a larger tensor: the first one's index there
};

// One entry of a pair.
struct EntryPlace {
  std::string tensor;
  Dims index;
  double value = 0, reference = 0;
  double deviation = 0;  // |value - reference| / scale
};

// max |x|; 0 if x is empty, NaN if an entry is NaN.
double largest_entry(const Tensor& x);

// The largest |value - reference| / scale over all pairs. Equal entries deviate by 0 whatever the scale. NaN if an
// entry is NaN. Throws if the shapes of a pair differ.
double deviation(const std::vector<Pair>& pairs);

// The pair that deviates most and its deviation, a NaN before all others; null and 0 if no pair has an entry.
std::pair<const Pair*, double> furthest_pair(const std::vector<Pair>& pairs);

// The entry that deviates most, a NaN before all others; nothing if no pair has an entry.
std::optional<EntryPlace> furthest_off(const std::vector<Pair>& pairs);

// The index of entry number `flat` (row-major) of a tensor of this shape.
Dims index_at(const Dims& shape, int64_t flat);

// "fc.weight[3, 4] is 0.25, in the reference 0.5", both to the last digit.
std::string describe(const EntryPlace& place);

// The larger of two deviations. NaN, once met, stays: std::max would lose it.
inline double larger(double a, double b) { return a != a || b <= a ? a : b; }

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

// x deviates from r by `off`, and may deviate by `limit`. Returns the smallest f for which (1 + f) x certainly exceeds
// the limit.
double detectable_factor(double off, double limit);

// "detectable: a factor of 1 + 2.2e-05 of any tensor"; the number is rounded up.
std::string detectable_text(double factor, const std::string& of = "any tensor");

}  // namespace isonorm::equivalence
