// Running sums and variances: how large their rounding errors may be.
#include "autograd/ops/reduce.h"

#include "tests/autograd/room.h"

using Values = std::vector<double>;

TEST_CASE("a long running sum keeps its digits, and so does its gradient") {
  // With n equal terms, rounding errs in one direction: adding them one by one is wrong by n roundings.
  constexpr int64_t n = int64_t{1} << 20;
  for (const DType d : {DType::f32, DType::f64}) {
    const Tensor x = require_grad(full({n}, 0.1, {d}));
    const double tenth = detach(x).to_vector<double>()[0], bound = (64 + 64 + n / 4096) * epsilon(d) / 2;
    const Tensor y = cumsum(x, 0);
    backward(y, full({n}, 0.1, {d}));
    const Values sums = y.to_vector<double>(), slopes = x.grad().to_vector<double>();
    double worst = 0, worst_slope = 0;
    for (int64_t i = 0; i < n; ++i) {
      const long double exact = static_cast<long double>(tenth) * (i + 1),
                        exact_slope = static_cast<long double>(tenth) * (n - i);
      worst = std::max(worst, static_cast<double>(std::abs(sums[i] - exact) / exact));
      worst_slope = std::max(worst_slope, static_cast<double>(std::abs(slopes[i] - exact_slope) / exact_slope));
    }
    INFO(name_of(d) << ": " << worst << ", " << worst_slope);
    CHECK(worst < bound);
    CHECK(worst_slope < bound);
  }
}

TEST_CASE("a running sum of nonnegative numbers never falls") {
  Generator g{11, 0};
  const std::vector<float> y = cumsum(rand({20000}, {}, g), 0).to_vector<float>();
  CHECK(std::is_sorted(y.begin(), y.end()));
}

TEST_CASE("the variance does not depend on the mean") {
  const Tensor halves = tensor({1.0, 1.5, 2.0, 2.0, 2.5}).to(DType::bf16);  // their mean, 1.8, is not a bf16 number
  CHECK(var(halves).item() == static_cast<float>(bf16(0.325f)));
  Generator g{12, 0};
  const Tensor x = add(rand({3000}, {}, g), 1000.0);
  const Values v = x.to_vector<double>();
  long double mean = 0, squares = 0;
  for (double e : v) mean += e / static_cast<long double>(v.size());
  for (double e : v) squares += (e - mean) * (e - mean);
  const double exact = static_cast<double>(squares / (v.size() - 1));
  CHECK(std::abs(var(x).item() - exact) < 2 * epsilon(DType::f32) * exact);
  // Gradients sum to zero, and are 2 (x - mean) / (n - 1).
  const Tensor leaf = require_grad(detach(x));
  backward(var(leaf));
  const Values slopes = leaf.grad().to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < v.size(); ++i)
    worst = std::max(worst, std::abs(slopes[i] - static_cast<double>(2 * (v[i] - mean) / (v.size() - 1))));
  CHECK(worst < 4 * epsilon(DType::f32) / 3000);
}

TEST_CASE("a variance of no degrees of freedom is infinite or NaN, never negative") {
  CHECK(var(tensor({1.0, 2.0, 4.0}), {}, 5).item() == HUGE_VAL);
  CHECK(var(tensor({1.0, 2.0, 4.0}), {}, 3).item() == HUGE_VAL);
  CHECK(std::isnan(var(tensor({1.0})).item()));
}
