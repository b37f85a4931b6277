// Internal: rounding of the results of ops, for controls: each result is moved by one unit in the last place.
#pragma once

#include "autograd/node.h"

namespace isonorm::equivalence {

// During the lifetime of this object, each new result of a floating op that this thread records is moved by one unit in
// the last place, element by element up or down, drawn from `seed`. These stay: views, infinities and NaN; the largest
// numbers of the dtype, which are masks; whole numbers, which are exact as a rule (0, 1, counts); results of amax and
// amin, which select an entry and round nothing, and whose rules look for it.
class MovedResults {
 public:
  [[nodiscard]] explicit MovedResults(uint64_t seed);

 private:
  void move(const char* op, const Tensor& result);

  uint64_t seed_;
  uint64_t ops_ = 0;  // that were moved
  autograd::OpWatch watch_;
};

}  // namespace isonorm::equivalence
