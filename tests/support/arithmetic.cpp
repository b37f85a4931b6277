// Checks that the compiler obeyed IEEE 754. flags.sh builds this program with flags that request other arithmetic.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "core/formulas/distributions.h"
#include "core/formulas/math.h"
#include "core/formulas/philox.h"

using namespace isonorm;

namespace {

int faults = 0;

void expect(bool right, const char* what) {
  if (!right) ++faults, std::printf("%s\n", what);
}

// The largest error of f on [lo, hi] in units in the last place of T, compared with C's function in f64.
template <class T, class F, class G> double worst(double lo, double hi, const F& f, const G& reference) {
  constexpr int count = 4000;
  static T x[count], y[count];
  for (int i = 0; i < count; ++i) x[i] = static_cast<T>(lo + (hi - lo) * i / count);
#pragma omp simd
  for (int i = 0; i < count; ++i) y[i] = f(x[i]);
  double largest = 0;
  for (int i = 0; i < count; ++i) {
    const double right = reference(static_cast<double>(x[i])), size = std::abs(right);
    const double ulp = std::ldexp(std::numeric_limits<T>::epsilon(), std::ilogb(size > 0x1p-100 ? size : 0x1p-100));
    const double error = std::abs(static_cast<double>(y[i]) - right) / ulp;
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

// tests/core/math_test.cpp checks that every function is off by less than two units; C's functions may be off by one
// more.
template <class T> void elementary_functions() {
  const auto right = [](double units, const char* name) { expect(units < 3, name); };
  right(worst<T>(
            -80, 80, [](T x) { return math::exp(x); }, [](double x) { return std::exp(x); }),
        "exp");
  right(worst<T>(
            0.001, 50, [](T x) { return math::log(x); }, [](double x) { return std::log(x); }),
        "log");
  right(worst<T>(
            -5, 5, [](T x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }),
        "tanh");
  right(worst<T>(
            -3, 3, [](T x) { return math::erf(x); }, [](double x) { return std::erf(x); }),
        "erf");
  right(worst<T>(
            0.1, 3, [](T x) { return math::sin(x); }, [](double x) { return std::sin(x); }),
        "sin");
}

// Philox4x32-10 with seed 56, from block 0 on. The uniform numbers were computed in Python from the formula, without
// fused multiply-adds, which would change four of the eight. The hash of 8192 normal numbers (FNV-1a over 64-bit words)
// comes from g++ 12 and clang 14 without optimisation.
void draws() {
  constexpr uint64_t uniform[] = {0x3fe1b556e23a9866, 0x3fd57a137e2249cf, 0x3fcb68b60a71486a, 0x3feb8a61789bc900,
                                  0x3feb8cc08d89746c, 0x3fcc8ce99ec36d66, 0x3fd390bce8b4af2b, 0xbf9752a8f8223590};
  const Uniform<double> draw(-0.3, 1.1);
  for (uint64_t block = 0; block < 8; ++block)
    expect(std::bit_cast<uint64_t>(draw(philox(56, block, 0).wide(0))) == uniform[block], "a uniform number");
  uint64_t hash = 0;
  for (uint64_t block = 0; block < 4096; ++block) {
    const PhiloxBlock b = philox(56, block, 0);
    double z[2];
    box_muller(unit_interval(b.wide(0)), unit_interval(b.wide(1)), z[0], z[1]);
    for (double v : z) hash = (hash ^ std::bit_cast<uint64_t>(v)) * 0x100000001b3;
  }
  expect(hash == 0x181a26ffc59b7739, "normal numbers");
}

}  // namespace

int main() {
  elementary_functions<float>();
  elementary_functions<double>();
  draws();
  volatile float nan = std::numeric_limits<float>::quiet_NaN(), tiny = 1e-40f, zero = 0, third = 3;
  const float n = nan, z = zero;
  expect(n != n && !(n <= 1) && std::isnan(n), "NaN");
  expect(std::signbit(-z) && std::signbit(0 * -third), "the sign of 0");
  expect(std::bit_cast<uint32_t>(tiny * third) == 3 * std::bit_cast<uint32_t>(float(tiny)),
         "subnormal numbers: the program was linked so");
  expect(third * 0.1 != third * static_cast<double>(0.1f), "a constant in f64");
  expect(*__builtin_FILE() != '/', "an absolute path");
  return faults ? 1 : 0;
}
