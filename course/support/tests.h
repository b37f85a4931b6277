// The tests of a lab. Each has a name, points and a function; course/lab runs each in its own process.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "support/library.h"

namespace course {

using namespace isonorm;

enum class Seen { visible, hidden };

// Defined at namespace scope: `const Test kSum("sum", 2, [] { ... });`. The function throws if the work is wrong. If it
// returns a number in [0, 1], this is the share of the points.
class Test {
 public:
  template <class F> Test(const char* name, double points, F f, Seen seen = Seen::visible) {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>)
      add(
          name, points, [f] { return f(), 1.; }, seen);
    else
      add(name, points, f, seen);
  }

 private:
  static void add(const char* name, double points, std::function<double()> run, Seen seen);
};

// Normal random numbers, f64, the same for the same seed.
Tensor random(const Dims& shape, uint64_t seed);

// max |a - b| / max(1, max |b|), in f64; infinite if the shapes differ or an entry of a is not finite.
double deviation(const Tensor& a, const Tensor& b);

// Throws "what: ..." if the shapes or dtypes differ, an entry of `got` is not finite, or the deviation is above
// 64 eps sqrt(length), with eps of the dtype: up to a constant, the rounding error of sums of `length` terms.
void expect_close(const char* what, const Tensor& got, const Tensor& expected, int64_t length = 64);

}  // namespace course
