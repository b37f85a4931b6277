// Pairs of tensors that ought to be equal: how far they are apart, and the first place where they are too far.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm::equivalence {

struct Pair {
  std::string name;
  Tensor value, reference;  // of one shape
  double scale = 0;         // that a difference is relative to: as a rule largest_entry(reference)
  int64_t first_row = 0;    // of dimension 0, where the two are rows of a larger tensor
};

// One entry of a pair.
struct EntryPlace {
  std::string tensor;
  Dims index;
  double value = 0, reference = 0;
  double deviation = 0;  // |value - reference| / scale
};

// max |x|; 0 of nothing. NaN where an entry is NaN.
double largest_entry(const Tensor& x);

// The largest |value - reference| / scale over all pairs; an entry that is equal deviates by 0 whatever the scale. NaN
// where there is one. Throws on pairs of two shapes.
double deviation(const std::vector<Pair>& pairs);

// The pair that deviates most and its deviation, a NaN before all others; null and 0 if no pair has an entry.
std::pair<const Pair*, double> furthest_pair(const std::vector<Pair>& pairs);

// The entry that deviates most, a NaN before all others; nothing where no pair has an entry.
std::optional<EntryPlace> furthest_off(const std::vector<Pair>& pairs);

// The index of entry `flat` (row-major) of a tensor of that shape.
Dims index_at(const Dims& shape, int64_t flat);

// "fc.weight[3, 4] is 0.25, in the reference 0.5", both to the last digit.
std::string describe(const EntryPlace& place);

// The larger of two deviations. NaN, once met, stays: std::max would lose it.
inline double larger(double a, double b) { return a != a || b <= a ? a : b; }

}  // namespace isonorm::equivalence
