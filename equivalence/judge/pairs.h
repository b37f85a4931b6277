// Pairs of tensors that should be equal: how far apart they are, and the entry that is furthest off.
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

}  // namespace isonorm::equivalence
