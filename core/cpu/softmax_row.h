// What a softmax makes of a row of scores: its maximum, and exponentials of what lies below it.
#pragma once

#include <limits>

#include "core/cpu/lanes.h"
#include "core/math/exp.h"

namespace isonorm {
namespace {

// e^x in each lane, for x <= 0 or NaN; 0 where e^x is below the smallest normal number.
template <class A> ISO_HD Vec<A> exp_lanes(Vec<A> x) {
  constexpr A lowest = sizeof(A) == 4 ? A(-87) : A(-708);
  return map_lanes<A>(x, [](A a) {
    const A y = math::exp_inside(math::clamp_below(a, lowest));
    return a < lowest ? A(0) : y;
  });
}

// Largest of n values, -inf of none; a NaN may be passed over.
template <class A, class T> ISO_HD A row_max(const T* x, int64_t n) {
  const Vec<A> lowest = splat<A>(-std::numeric_limits<A>::infinity());
  Vec<A> top = lowest;
  for_lanes<A>(n, [&](int64_t i, auto lanes) {
    const Vec<A> v = lanes.choose(lanes.load(x + i), lowest);
    top = v > top ? v : top;
  });
  return max_lanes<A>(top);
}

}  // namespace
}  // namespace isonorm
