// A program that is compiled and linked with -ffast-math gets the library's usual results. It compares bits, because
// its own arithmetic does not follow IEEE 754.
#include <isonorm/isonorm.h>

#include <bit>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <thread>
#include <vector>

using namespace isonorm;

namespace {

int faults = 0;

void expect(bool right, const char* what) {
  if (!right) ++faults, std::printf("fast_math: %s\n", what);
}

uint32_t first_bits(const Tensor& t) { return std::bit_cast<uint32_t>(t.data<float>()[0]); }

bool all_are(const Tensor& t, uint32_t bits) {
  for (int64_t i = 0; i < t.numel(); ++i)
    if (std::bit_cast<uint32_t>(t.data<float>()[i]) != bits) return false;
  return true;
}

void check_results() {
  // Within one unit of the correctly rounded values of exp(0.1) and exp(2.9).
  expect(first_bits(exp(full({1}, 0.1))) - 0x3f8d763d <= 2, "exp(0.1)");
  expect(first_bits(exp(full({1}, 2.9))) - 0x419164a6 <= 2, "exp(2.9)");
  // In units of the smallest subnormal number: exp(-100) is 26.54, half of 6 is 3. Enough elements for several threads.
  expect(all_are(exp(full({300'000}, -100.0)), 27), "exp(-100)");
  expect(all_are(full({300'000}, 6 * 0x1p-149) * 0.5, 3), "half of a subnormal number");
  // The uniform numbers of seed 56 (tests/support/arithmetic.cpp).
  Generator generator{56, 0};
  const Tensor u = uniform({2}, -0.3, 1.1, {DType::f64}, generator);
  expect(std::bit_cast<uint64_t>(u.data<double>()[0]) == 0x3fe1b556e23a9866, "uniform");
  const Tensor z = randn({4096}, {DType::f64}, generator);
  int64_t zeros = 0;
  for (int64_t i = 0; i < z.numel(); ++i) zeros += std::bit_cast<uint64_t>(z.data<double>()[i]) << 1 == 0;
  expect(zeros == 0, "randn");
  // 1 + 2^-24 is a tie.
  expect(first_bits(full({1}, 1.0) + 0x1p-24) == 0x3f800000, "1 + 2^-24");
}

}  // namespace

int main() {
#ifdef __x86_64__
  volatile float tiny = std::bit_cast<float>(6u);
  volatile float half = 0.5f * tiny;
  expect(std::bit_cast<uint32_t>(float(half)) == 0, "this program does not flush subnormal numbers: the test is void");
#endif
  check_results();
  std::thread(check_results).join();
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    check_results();
    std::fesetround(FE_TONEAREST);
  }

  const double nan = std::numeric_limits<double>::quiet_NaN();
  equivalence::Deviation deviation;
  deviation.size = nan, deviation.bound = 1e-16;
  expect(!deviation.explained(), "rounding explains a NaN");
  equivalence::TensorsComparison::Row row;
  row.deviation = nan, row.tolerance = 1e-6;
  expect(row.verdict() == equivalence::Verdict::different, "a NaN is the same tensor");
  equivalence::ReferenceFindings findings;
  findings.share = nan;
  expect(!findings.agrees(), "a NaN agrees with a reference");
  return faults ? 1 : 0;
}
