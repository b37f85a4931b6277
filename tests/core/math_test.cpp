// core/formulas/math.h against C's library in long double: errors in units in the last place, special values, and
// seams.
#include "tests/support/catch.h"

#include <cfloat>
#include <limits>
#include <random>
#include <vector>

#include "core/formulas/math.h"

namespace math = isonorm::math;

namespace {

using Real = long double;

// Runs a function as kernels do: in a vectorised loop over an array.
template <class F, class T> std::vector<T> map(F f, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  const T* in = x.data();
  T* out = y.data();
#pragma omp simd
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = f(in[i]);
  return y;
}

template <class F, class T> T one(F f, T x) { return map(f, std::vector<T>(37, x))[21]; }

/// Error |y - exact| in units in the last place of the exact value as a T. Below the normal range the unit is the
/// smallest subnormal.
template <class T> double ulps(T y, Real exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(y) || std::isnan(exact)) return std::isnan(y) == std::isnan(exact) ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const Real unit = std::ldexp(Real(1), std::max(exponent, Limits::min_exponent) - Limits::digits);
  const Real rounds_to_infinity = Real(Limits::max()) + unit / 2;
  if (std::isinf(y))
    return std::signbit(y) == std::signbit(exact) && std::abs(exact) > rounds_to_infinity - 2 * unit ? 0 : INFINITY;
  return static_cast<double>(std::abs(Real(y) - exact) / unit);
}

/// Every exponent of the type with random mantissas, and even samples of [lo, hi]; both signs if [lo, hi] has them.
template <class T> std::vector<T> samples(double lo, double hi) {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 generator(20);
  std::uniform_real_distribution<double> even(lo, hi), mantissa(1, 2);
  std::vector<T> x;
  for (int e = Limits::min_exponent - Limits::digits; e < Limits::max_exponent; ++e)
    for (int i = 0; i < 20; ++i) {
      const T v = std::ldexp(static_cast<T>(mantissa(generator)), e);
      if (v <= hi) x.push_back(v);
      if (-v >= lo) x.push_back(-v);
    }
  for (int i = 0; i < 60000; ++i) x.push_back(static_cast<T>(even(generator)));
  return x;
}

struct Range {
  double low, high;
};

/// Checks the largest error in each range.
template <class T, class F>
void compare(const char* name, F f, Real (*exact)(Real), double bound, std::initializer_list<Range> ranges) {
  for (const auto& [low, high] : ranges) {
    const std::vector<T> x = samples<T>(low, high), y = map(f, x);
    double worst = 0;
    T where = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const double error = ulps(y[i], exact(Real(x[i]))); error > worst) worst = error, where = x[i];
    INFO(name << (sizeof(T) == 4 ? "<float>" : "<double>") << " on [" << low << ", " << high << "]: " << worst
              << " ulp at " << where);
    CHECK(worst <= bound);
  }
}

constexpr auto exp_of = [](auto x) { return math::exp(x); };
constexpr auto exp2_of = [](auto x) { return math::exp2(x); };
constexpr auto expm1_of = [](auto x) { return math::expm1(x); };
constexpr auto log_of = [](auto x) { return math::log(x); };
constexpr auto log2_of = [](auto x) { return math::log2(x); };
constexpr auto log1p_of = [](auto x) { return math::log1p(x); };
constexpr auto tanh_of = [](auto x) { return math::tanh(x); };
constexpr auto erf_of = [](auto x) { return math::erf(x); };
constexpr auto sin_of = [](auto x) { return math::sin(x); };
constexpr auto cos_of = [](auto x) { return math::cos(x); };
constexpr auto sigmoid_of = [](auto x) { return math::sigmoid(x); };
constexpr auto softplus_of = [](auto x) { return math::softplus(x); };
constexpr auto gelu_of = [](auto x) { return math::gelu(x); };
constexpr auto gelu_grad_of = [](auto x) { return math::gelu_grad(x); };
constexpr auto gelu_tanh_of = [](auto x) { return math::gelu_tanh(x); };
constexpr auto gelu_tanh_grad_of = [](auto x) { return math::gelu_tanh_grad(x); };

const Real kPi = std::acos(Real(-1));

Real sigmoid_exact(Real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
Real softplus_exact(Real x) { return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x))); }

/// Phi(x) = erfc(-x / sqrt(2)) / 2. t is erfc's rounded argument; the difference of x^2 and 2 t^2 is corrected to first
/// order.
Real cdf(Real x) {
  const Real t = -x * std::sqrt(Real(0.5)), xx = x * x, tt = t * t;
  const Real lost = (xx - 2 * tt) + (std::fma(x, x, -xx) - 2 * std::fma(t, t, -tt));
  return std::erfc(t) / 2 - (x == 0 ? 0 : lost / (4 * t) * std::exp(-tt) / std::sqrt(kPi));
}
Real pdf(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * kPi); }
Real argument(Real x) { return 2 * std::sqrt(2 / kPi) * (x + Real(0.044715) * x * x * x); }
Real gelu_tanh_exact(Real x) { return x * sigmoid_exact(argument(x)); }
Real argument_grad(Real x) { return 2 * std::sqrt(2 / kPi) * (1 + 3 * Real(0.044715) * x * x); }

}  // namespace

TEMPLATE_TEST_CASE("functions of core/formulas/math.h are accurate", "[math]", float, double) {
  using T = TestType;
  const bool f32 = sizeof(T) == 4;
  const double most = std::numeric_limits<T>::max(), low = f32 ? -110 : -750, high = f32 ? 90 : 711;
  const double exact = math::kTrigExact;
  compare<T>("exp", exp_of, std::exp, 1.1, {{low, high}, {-1, 1}});
  compare<T>("exp2", exp2_of, std::exp2, 1.3, {{f32 ? -155. : -1080., f32 ? 130. : 1026.}, {-1, 1}});
  compare<T>("expm1", expm1_of, std::expm1, 1.7, {{-60, high}, {-1.5, 1.5}});
  compare<T>("log", log_of, std::log, 1, {{0, most}, {0.3, 3}});
  compare<T>("log2", log2_of, std::log2, 2, {{0, most}, {0.3, 3}});
  compare<T>("log1p", log1p_of, std::log1p, 1, {{-1, most}, {-0.9, 3}});
  compare<T>("tanh", tanh_of, std::tanh, 1.5, {{-25, 25}, {-1, 1}});
  compare<T>("erf", erf_of, std::erf, 1.4, {{-7, 7}, {-1.2, 1.2}});
  compare<T>("sin", sin_of, std::sin, 1.6, {{-exact, exact}, {-4, 4}});
  compare<T>("cos", cos_of, std::cos, 1.6, {{-exact, exact}, {-4, 4}});
  compare<T>("sigmoid", sigmoid_of, sigmoid_exact, 1.5, {{low, 100}, {-6, 6}});
  compare<T>("softplus", softplus_of, softplus_exact, 2, {{low, 1e4}, {-4, 4}});
  const auto gelu_exact = [](Real x) { return x * cdf(x); };
  compare<T>("gelu", gelu_of, gelu_exact, 10, {{f32 ? -15. : -39., 40}});
  compare<T>("gelu", gelu_of, gelu_exact, 7, {{-3, 3}});
  compare<T>("gelu_tanh", gelu_tanh_of, gelu_tanh_exact, 4, {{-1, 40}});
}

// Errors that the formula makes unavoidable: e^-v has v times the relative error of v; a subnormal sigmoid is rounded
// by half a unit, which x multiplies by |x|.
TEMPLATE_TEST_CASE("deep tails of activations are as accurate as docs/numerics.md says", "[math]", float, double) {
  using T = TestType;
  const double end = sizeof(T) == 4 ? -10 : -21, low = sizeof(T) == 4 ? -103 : -745;
  compare<T>("gelu_tanh", gelu_tanh_of, gelu_tanh_exact, 3 * static_cast<double>(-argument(end)), {{end, -1}});
  const auto silu = [](auto x) { return x * math::sigmoid(x); };
  const auto silu_exact = [](Real x) { return x * sigmoid_exact(x); };
  compare<T>("silu", silu, silu_exact, 3, {{sizeof(T) == 4 ? -87. : -708., 100}});
  compare<T>("silu", silu, silu_exact, 3 - low / 2, {{low, 0}});
}

// No relative bound holds where a derivative crosses 0, and the negative tail of the tanh form magnifies the rounding
// of its argument. So the error is measured against 1, the size of the derivative.
TEMPLATE_TEST_CASE("derivatives of the gelu forms are accurate", "[math]", float, double) {
  using T = TestType;
  const T eps = std::numeric_limits<T>::epsilon();
  for (const T x : samples<T>(-45, 45)) {
    const Real s = sigmoid_exact(argument(x)), ds = s * sigmoid_exact(-argument(x));
    CHECK(std::abs(one(gelu_grad_of, x) - (cdf(x) + x * pdf(x))) <= 3 * eps);
    CHECK(std::abs(one(gelu_tanh_grad_of, x) - (s + x * ds * argument_grad(x))) <= 3 * eps);
    CHECK(std::abs(one(gelu_tanh_of, x) - x * s) <= 3 * eps * std::max(std::abs(x), T(1)));
  }
}

TEMPLATE_TEST_CASE("sin and cos of huge arguments err by what x itself is uncertain by", "[math]", float, double) {
  using T = TestType;
  for (const T x : samples<T>(-1e15, 1e15)) {
    const double bound = DBL_EPSILON * std::max(std::abs(double(x)), 1.0) + std::numeric_limits<T>::epsilon();
    CHECK(std::abs(one(sin_of, x) - std::sin(Real(x))) <= bound);
    CHECK(std::abs(one(cos_of, x) - std::cos(Real(x))) <= bound);
  }
  CHECK(one(sin_of, T(1e30)) == 0);
  CHECK(one(cos_of, T(-1e30)) == 1);
}

TEMPLATE_TEST_CASE("special values of core/formulas/math.h", "[math]", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity(), nan = Limits::quiet_NaN(), tiny = Limits::denorm_min();
  const auto same = [&](const char* name, auto f, T x, T expected) {
    const T y = one(f, x);
    INFO(name << "(" << x << ") = " << y << ", expected " << expected);
    CHECK(((std::isnan(y) && std::isnan(expected)) || (y == expected && std::signbit(y) == std::signbit(expected))));
  };
  const auto check = [&](const char* name, auto f, T at_minus_inf, T at_minus_zero, T at_zero, T at_inf) {
    same(name, f, -inf, at_minus_inf);
    same(name, f, T(-0.0), at_minus_zero);
    same(name, f, T(0), at_zero);
    same(name, f, inf, at_inf);
    same(name, f, nan, nan);
  };
  const auto odd = [&](const char* name, auto f) { same(name, f, tiny, tiny), same(name, f, -tiny, -tiny); };
  const T zero = 0, minus = T(-0.0), ln2 = static_cast<T>(std::log(Real(2)));

  check("exp", exp_of, 0, 1, 1, inf);
  check("expm1", expm1_of, -1, minus, zero, inf);
  odd("expm1", expm1_of);
  check("log", log_of, nan, -inf, -inf, inf);
  same("log", log_of, 1, 0);
  same("log", log_of, -1, nan);
  same("log", log_of, -tiny, nan);
  check("log1p", log1p_of, nan, minus, zero, inf);
  odd("log1p", log1p_of);
  same("log1p", log1p_of, -1, -inf);
  same("log1p", log1p_of, -2, nan);
  check("tanh", tanh_of, -1, minus, zero, 1);
  odd("tanh", tanh_of);
  check("erf", erf_of, -1, minus, zero, 1);
  odd("erf", erf_of);
  check("sigmoid", sigmoid_of, 0, 0.5, 0.5, 1);
  check("softplus", softplus_of, 0, ln2, ln2, inf);
  check("sin", sin_of, nan, minus, zero, nan);
  odd("sin", sin_of);
  check("cos", cos_of, nan, 1, 1, nan);
  check("gelu", gelu_of, zero, minus, zero, inf);
  check("gelu_grad", gelu_grad_of, minus, 0.5, 0.5, 1);
  check("gelu_tanh", gelu_tanh_of, zero, minus, zero, inf);
  check("gelu_tanh_grad", gelu_tanh_grad_of, minus, 0.5, 0.5, 1);
}

TEMPLATE_TEST_CASE("elementary functions rise through the seams of their formulas", "[math]", float, double) {
  using T = TestType;
  const auto rises = [](const char* name, auto f, double at) {
    std::vector<T> x;
    T v = static_cast<T>(at);
    for (int i = 0; i < 200; ++i) v = std::nextafter(v, T(-1e30));
    for (int i = 0; i < 400; ++i) x.push_back(v), v = std::nextafter(v, T(1e30));
    const std::vector<T> y = map(f, x);
    for (std::size_t i = 1; i < y.size(); ++i) {  // neighbours may cross by the error bound, but never by a step
      INFO(name << " at " << x[i]);
      CHECK(y[i] - y[i - 1] >= -2 * std::numeric_limits<T>::epsilon() * std::abs(y[i]));
      CHECK(y[i] - y[i - 1] <= 4 * std::numeric_limits<T>::epsilon() * std::abs(y[i]));
    }
  };
  const double half_ln2 = 0.34657359027997264;
  for (const double k : {-7.0, -3.0, -1.0, 1.0, 3.0, 9.0}) {
    rises("exp", exp_of, k * half_ln2);
    rises("expm1", expm1_of, k * half_ln2);
    rises("sigmoid", sigmoid_of, k * half_ln2);
  }
  for (const double root : {0.35355339059327379, 0.70710678118654757, 1.4142135623730951, 2.8284271247461903})
    rises("log", log_of, root), rises("log1p", log1p_of, root - 1);
  for (const double sign : {-1.0, 1.0}) {
    rises("tanh", tanh_of, sign * 0.55);
    rises("erf", erf_of, sign);
    rises("erf", erf_of, sign * (sizeof(T) == 4 ? 3.95 : 5.95));
  }
}
