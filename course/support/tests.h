// The tests of a lab. Each is a name, points and a function; course/lab runs each in a process of its own.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <isonorm/isonorm.h>

namespace course {

using namespace isonorm;

enum class Seen { visible, hidden };

// Made at namespace scope: `const Test kSum("sum", 2, [] { ... });`. The function throws where the work is wrong. One that
// gives a number gives the share of the points that was earned, in [0, 1].
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

// Normal numbers, f64, the same in each call with one seed.
Tensor random(const Dims& shape, uint64_t seed);

// max |a - b| over the larger of 1 and max |b|, in f64; infinite where shapes differ or a has an entry that is not finite.
double deviation(const Tensor& a, const Tensor& b);

// Throws "what: ..." where the deviation is above 64 eps sqrt(length), eps that of the dtype: what sums of `length` terms may
// have in rounding, a constant aside.
void expect_close(const char* what, const Tensor& got, const Tensor& expected, int64_t length = 64);

}  // namespace course
