// The effect of chance on controls: the fit of a tail compared with distributions with known quantiles, and drawn
// proofs compared with a closed form.
#include "lab/papers/control_ratio.h"

#include "core/error.h"
#include "core/formulas/philox.h"
#include "tests/equivalence/room.h"

namespace {

// Uniform in (0, 1).
double uniform(uint64_t i) { return (static_cast<double>(philox(9, i).wide(0) >> 11) + 0.5) * 0x1p-53; }

template <class F> std::vector<double> sample(int n, F quantile) {
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(quantile(uniform(static_cast<uint64_t>(i))));
  return x;
}

std::vector<double> factors(const std::vector<DrawnProof>& proofs) {
  std::vector<double> result;
  for (const DrawnProof& proof : proofs) result.push_back(worst(proof).factor);
  return result;
}

// One step in which only the loss deviates.
RunResult path(double loss) {
  RunResult r;
  r.deviations = {{loss}, {0}, {0}};
  return r;
}

}  // namespace

TEST_CASE("tail: the exponent and quantiles of Pareto samples are estimated, beyond the sample too") {
  // P(X > x) = x^-a. The relative error of the exponent is 1 / sqrt(k), and that of a quantile at rate r is log(share /
  // r) / a times as large. Allows four of them.
  const int n = 100000;
  const double share = 0.02, off = 4 / std::sqrt(share * n);
  for (const double exponent : {2, 5, 12}) {
    const auto tail = fit_tail(sample(n, [=](double u) { return std::pow(u, -1 / exponent); }), share);
    INFO("exponent " << exponent);
    REQUIRE(tail);
    CHECK(std::abs(tail->exponent / exponent - 1) < off);
    CHECK(std::abs(tail->threshold / std::pow(share, -1 / exponent) - 1) < off / exponent);
    for (double rate : {1e-2, 1e-3, 1e-6}) {
      const double at = std::pow(rate, -1 / exponent);
      CHECK(std::abs(std::log(tail->value(rate) / at)) < off * (1 + std::log(share / rate)) / exponent);
      CHECK(std::abs(std::log(tail->rate(at) / rate)) < off * (1 + std::log(share / rate)));
      CHECK(tail->rate(tail->value(rate)) / rate == Approx(1));
    }
    CHECK(tail->rate(0) == share);
    CHECK(tail->value(0.5) == tail->threshold);
  }
  // An exponential tail is thinner than any power law fitted to it.
  const auto thin = fit_tail(sample(n, [](double u) { return -std::log(u); }), share);
  REQUIRE(thin);
  // The threshold is t = log 50. The mean of log(x / t) beyond it is exp(t) E1(t) = 0.2098, so the fit gives t
  // 20^0.2098.
  CHECK(std::abs(std::log(thin->value(1e-3) / 7.334)) < off * (1 + std::log(20.0)) / 4.77);
  for (double x : {15.0, 20.0, 30.0}) CHECK(thin->rate(x) > std::exp(-x));
}

TEST_CASE("tail: nothing is fitted to zeros, ties or a handful") {
  CHECK_FALSE(fit_tail(std::vector<double>(1000, 0), 0.01));
  CHECK_FALSE(fit_tail(std::vector<double>(1000, 3), 0.01));
  std::vector<double> few(1000, 0);
  for (int i = 0; i < 10; ++i) few[i] = 1 + i;
  CHECK_FALSE(fit_tail(few, 0.01));
  CHECK_THROWS_WITH(fit_tail(few, 0.001), Contains("expected at least 2"));
  CHECK_THROWS_WITH(fit_tail({1, 2}, 1), Contains("one that is left"));
  CHECK(exceeded_by(few, 0) == 10);
  CHECK(exceeded_by(few, 0.003) == 7);
  CHECK(exceeded_by(few, 0.5) == 0);
  CHECK(part_above(few, 7) == 0.003);
  CHECK_THROWS_AS(exceeded_by({}, 0.5), Error);
}

TEST_CASE("needs of a run: the largest factor beyond 64 eps, and the largest floor with a factor of 30") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double eps = epsilon(dtype);
    CHECK(bound_factor(dtype) == Approx(30));
    CHECK(bound_floor(dtype) == 64);
    const Deviations control = {{eps, 2 * eps}, {10 * eps, 10 * eps}, {4 * eps, 8 * eps}};
    const Needed n = needed({{0, 70 * eps}, {124 * eps, 114 * eps}, {0, 80 * eps}}, control, dtype);
    CHECK(n.factor == Approx(6));  // gradient at step 1: (124 - 64) / 10
    CHECK(n.floor == Approx(10));  // loss at step 2: 70 - 30 * 2
    const Needed weight = needed({{0, 0}, {0, 0}, {0, 104 * eps}}, control, dtype);
    CHECK(weight.factor == Approx(5));
    CHECK(weight.floor == 0);
    CHECK(needed({{64 * eps, 0}, {0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {0, 0}}, dtype).factor == 0);
    CHECK(std::isinf(needed({{65 * eps, 0}, {0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {0, 0}}, dtype).factor));
    CHECK(std::isinf(needed({{0, NAN}, {0, 0}, {0, 0}}, control, dtype).factor));
    CHECK(std::isinf(needed({{0, NAN}, {0, 0}, {0, 0}}, control, dtype).floor));
  }
  CHECK_THROWS_WITH(needed({{1}, {1}, {1}}, {{1, 1}, {1, 1}, {1, 1}}, DType::f64),
                    Contains("needed: a run of 1 steps"));
}

TEST_CASE("drawn proofs: runs exceed controls of the same distribution with the closed form's frequency") {
  // Deviations u^(-1/2) with u uniform in (0, 1). Let s = f^-2 and m the smallest u of n controls. The worst of three
  // runs exceeds f times the largest control with probability 1 - E (1 - s m)^3 = 3 s E m - 3 s^2 E m^2 + s^3 E m^3,
  // with E m^k = k! n! / (n + k)!.
  std::vector<RunResult> paths;
  for (uint64_t i = 0; i < 20000; ++i) paths.push_back(path(std::pow(uniform(i), -0.5)));
  for (const int controls : {1, 4, 8}) {
    const std::vector<double> needed = factors(drawn_proofs(paths, {}, controls, 20000, 1, DType::f64));
    for (const double f : {1.0, 1.5, 3.0}) {
      const double s = 1 / (f * f), n = controls, m = 1 / (n + 1), m2 = 2 * m / (n + 2), m3 = 3 * m2 / (n + 3);
      const double p = 3 * s * m - 3 * s * s * m2 + s * s * s * m3;
      INFO(controls << " controls, factor " << f << ": " << p);
      // Four standard errors for the number of proofs that the paths yield if no path is shared.
      CHECK(std::abs(part_above(needed, f) - p) < 4 * std::sqrt(p * (1 - p) * (n + 3) / 20000));
    }
  }
}

TEST_CASE("drawn proofs: no path twice, one run of each form, and the same however many are drawn") {
  // If there are only as many paths as a proof needs, all are used. The three runs are the largest in 1 of 35 draws.
  // draws.
  std::vector<RunResult> seven, forms;
  for (int i = 1; i <= 7; ++i) seven.push_back(path(i));
  for (const double factor : factors(drawn_proofs(seven, {}, 4, 200, 1, DType::f64))) {
    // The largest control is 4, 5, 6 or 7. If it is 7, the worst run is smaller.
    bool known = false;
    for (const double worst : {3, 4, 5, 6, 7})
      for (const double most : {4, 5, 6, 7}) known = known || (worst != most && factor == Approx(worst / most));
    CHECK(known);
  }
  CHECK_THROWS_WITH(drawn_proofs(std::span(seven).first(6), {}, 4, 1, 1, DType::f64),
                    Contains("6 paths for 7 of a proof"));
  for (const double size : {1, 1, 2, 2, 20, 40}) forms.push_back(path(size));
  int twenty = 0;
  for (const DrawnProof& proof : drawn_proofs(std::span(seven).first(4), forms, 4, 200, 1, DType::f64)) {
    CHECK(proof[0].factor == Approx(0.25));
    CHECK(proof[1].factor == Approx(0.5));
    CHECK((proof[2].factor == Approx(5) || proof[2].factor == Approx(10)));
    CHECK(worst(proof).factor == proof[2].factor);
    twenty += proof[2].factor < 7;
  }
  CHECK(std::abs(twenty - 100) < 40);
  CHECK(worst({Needed{1, 9}, Needed{3, 2}, Needed{2, 1}}).factor == 3);
  CHECK(worst({Needed{1, 9}, Needed{3, 2}, Needed{2, 1}}).floor == 9);
  CHECK_THROWS_WITH(drawn_proofs(seven, std::span(forms).first(4), 4, 1, 1, DType::f64), Contains("three groups"));

  const auto drawn = [&](int proofs, uint64_t seed) {
    return factors(drawn_proofs(seven, {}, 4, proofs, seed, DType::f64));
  };
  const std::vector<double> more = drawn(100, 3);
  CHECK(drawn(10, 3) == std::vector(more.begin(), more.begin() + 10));
  CHECK(drawn(100, 4) != more);
}
