// Random tensors beyond their rows in tests/op_cases: distributions, the generator, masks.
#include "autograd/ops/random.h"

#include <map>

#include "core/formulas/philox.h"
#include "tests/autograd/room.h"

namespace {

constexpr TensorOptions kF64{DType::f64};

// Largest distance between the empirical distribution of x and `cdf`, times sqrt(n): above 2.2 once in 10,000 seeds
// (Kolmogorov).
template <class F> double kolmogorov(const Tensor& x, F cdf) {
  std::vector<double> v = x.to_vector<double>();
  std::sort(v.begin(), v.end());
  const double n = static_cast<double>(v.size());
  double worst = 0;
  for (size_t i = 0; i < v.size(); ++i)
    worst = std::max({worst, std::abs(cdf(v[i]) - double(i) / n), std::abs(cdf(v[i]) - double(i + 1) / n)});
  return worst * std::sqrt(n);
}
double normal_cdf(double z) { return 0.5 * std::erfc(-z * std::sqrt(0.5)); }

// The number of `draws` that gave each of n values.
std::vector<int> histogram(const Tensor& draws, int64_t n) {
  std::vector<int> count(n);
  for (int64_t v : draws.to_vector<int64_t>()) ++count.at(v);
  return count;
}

}  // namespace

TEST_CASE("fills follow their distributions") {
  manual_seed(11);
  const Dims shape{100000};
  CHECK(kolmogorov(rand(shape, kF64), [](double u) { return u; }) < 2.2);
  CHECK(kolmogorov(uniform(shape, -3, 5, kF64), [](double u) { return (u + 3) / 8; }) < 2.2);
  CHECK(kolmogorov(randn(shape, kF64), normal_cdf) < 2.2);
  CHECK(kolmogorov(exponential(shape, kF64), [](double x) { return -std::expm1(-x); }) < 2.2);
  const double low = normal_cdf(-1), high = normal_cdf(2);
  const Tensor t = truncated_normal(shape, 1, 0.5, 0.5, 2, kF64);
  CHECK(kolmogorov(t, [&](double x) { return (normal_cdf((x - 1) / 0.5) - low) / (high - low); }) < 2.2);
  CHECK(amin(t).item() >= 0.5);
  CHECK(amax(t).item() <= 2);
  for (DType dtype : {DType::f32, DType::bf16}) {  // bounds that rounding to the nearest value would exceed
    const Tensor rounded = truncated_normal({2000}, 1, 5, 0.5004, 1.9996, {dtype});
    CHECK(amin(rounded).item() >= 0.5004);
    CHECK(amax(rounded).item() <= 1.9996);
  }
  // 4 standard deviations: sqrt(p (1 - p) / n) of a fraction.
  const std::vector<int> count = histogram(add(randint(-3, 4, shape).to(DType::f64), 3), 7);
  for (int c : count) CHECK(std::abs(c / 1e5 - 1 / 7.0) < 4 * std::sqrt(6 / 49.0 / 1e5));
}

TEST_CASE("pairs of normal numbers are independent") {
  manual_seed(3);
  const std::vector<double> z = randn({100096}, kF64).to_vector<double>();
  double product = 0;
  for (size_t e = 0; e + 64 < z.size(); ++e) product += z[e] * z[e + 64];  // both parts of a block, and neighbours
  CHECK(std::abs(product) < 4 * std::sqrt(1e5));
}

TEST_CASE("bits depend on seed and position alone") {
  manual_seed(7);
  const Generator g{7, 0};
  const PhiloxPlace place = philox_place(1000, 2);
  CHECK(rand({1001}, kF64).to_vector<double>()[1000] == unit_interval(philox(g.seed, place.block).wide(place.part)));
  const Generator after = default_generator();
  const std::vector<double> x = rand({10}).to_vector<double>();
  CHECK(rand({10}).to_vector<double>() != x);
  default_generator() = after;
  CHECK(rand({10}).to_vector<double>() == x);
}

TEST_CASE("a uniform number never reaches the upper end, whatever it rounds to") {
  Generator g{2, 0};
  for (DType d : {DType::bf16, DType::f32, DType::f64}) {
    for (double hi : {1.0, 1.003, 0.0, -1.0, 1e-3}) {
      const Tensor x = uniform({20000}, hi - 1, hi, {d}, g);
      CHECK(amax(x.to(DType::f64)).item() < hi);
      if (hi != 1e-3) CHECK(amax(x.to(DType::f64)).item() > hi - 0.01);
    }
  }
}

TEST_CASE("each permutation is as likely as the others") {
  Generator g{4, 0};
  std::map<std::vector<int64_t>, int> seen;
  for (int i = 0; i < 24000; ++i) ++seen[randperm(4, kCpu, g).to_vector<int64_t>()];
  CHECK(seen.size() == 24);
  for (const auto& [order, count] : seen) CHECK(std::abs(count - 1000) < 5 * std::sqrt(1000.0));
}

TEST_CASE("dropout that drops nothing gives x back, and backward uses the forward's mask") {
  Generator g{9, 0};
  const Tensor x = require_grad(uniform({300, 701}, 1, 2, kF64, g));
  const Tensor y = dropout(x, 0.25, true, g);
  dropout(x, 0.5, true, g);  // advances the generator
  backward(sum(y));
  const std::vector<double> vx = x.to_vector<double>(), vy = y.to_vector<double>(), dx = x.grad().to_vector<double>();
  for (size_t i = 0; i < vx.size(); ++i)
    if (vy[i] != (dx[i] == 0 ? 0 : vx[i] * (1 / 0.75)) || (dx[i] != 0 && dx[i] != 1 / 0.75)) FAIL("element " << i);
  CHECK(dropout(x, 0.5, false).handle() == x.handle());
  CHECK(dropout(x, 0).handle() == x.handle());
}

TEST_CASE("multinomial draws in proportion to the weights") {
  Generator g{21, 0};
  const Tensor w = from_vector<float>({0, 1, 3, 0, 4, 0, 0, 5, 0, 0, 0, 0}, {2, 6});
  const Tensor draws = multinomial(w, 40000, true, g);
  CHECK(draws.shape() == Dims{2, 40000});
  const std::vector<int> count = histogram(draws, 6);
  const double expected[] = {0, 5000 + 40000, 15000, 0, 20000, 0};
  for (int j = 0; j < 6; ++j) CHECK(std::abs(count[j] - expected[j]) <= 4 * std::sqrt(expected[j]));
}
