// Parts of a softmax over a row of scores: the row's maximum, and exponentials of differences from it.
#pragma once

#include <limits>

#include "core/cpu/lanes.h"
#include "core/formulas/math/exp.h"

namespace isonorm {
namespace {

// e^x in each lane, for x <= 0 or NaN; 0 if e^x is below the smallest normal number.
template <class A> ISO_HD Vec<A> exp_lanes(Vec<A> x) {
  constexpr A lowest = sizeof(A) == 4 ? A(-87) : A(-708);
  return map_lanes<A>(x, [](A a) {
    const A y = math::exp_inside(math::clamp_below(a, lowest));
    return a < lowest ? A(0) : y;
  });
}

// Largest of n values, -inf if n is 0. A NaN may be missed.
template <class A, class T> ISO_HD A row_max(const T* x, int64_t n) {
  constexpr int64_t w = kLanes<A>;
  const Vec<A> lowest = splat<A>(-std::numeric_limits<A>::infinity());
  const auto larger = [](Vec<A> a, Vec<A> b) { return a > b ? a : b; };
  Vec<A> top[4] = {lowest, lowest, lowest, lowest};  // four hide the latency of a comparison
  int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w)
    for (int u = 0; u < 4; ++u) top[u] = larger(load_lanes<A>(x + i + u * w), top[u]);
  for_lanes<A>(n - i,
               [&](int64_t k, auto lanes) { top[0] = larger(lanes.choose(lanes.load(x + i + k), lowest), top[0]); });
  return max_lanes<A>(larger(larger(top[0], top[1]), larger(top[2], top[3])));
}

}  // namespace
}  // namespace isonorm
