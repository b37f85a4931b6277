// F16: every number of it is read and written as it is, and what lies between two goes to the nearer one.
#include "io/half.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

// What the bits mean, by IEEE 754's formula.
double value_of(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent != 31 ? std::ldexp(1024 + fraction, exponent - 25)
                                       : (fraction ? NAN : INFINITY);
  return bits >> 15 ? -size : size;
}

int bits_of(const Tensor& bytes, int64_t i) {
  return bytes.data<uint8_t>()[2 * i] | bytes.data<uint8_t>()[2 * i + 1] << 8;
}

}  // namespace

TEST_CASE("half: every number of F16 is read as it is, and written again") {
  Tensor bytes = empty({1 << 16, 2}, {DType::u8});
  for (int i = 0; i < 1 << 17; ++i) bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i % 2 ? i / 2 >> 8 : i / 2);
  const Tensor x = io::from_half(bytes), again = io::to_half(x);
  REQUIRE(x.shape() == Dims{1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    const double expected = value_of(i), found = x.data<float>()[i];
    const bool nan = std::isnan(expected);
    const bool right = nan ? std::isnan(found) : found == expected && std::signbit(found) == std::signbit(expected);
    if (!right) FAIL(i << ": " << found << ", expected " << expected);
    if (bits_of(again, i) != (nan ? i | 0x200 : i)) FAIL(i << " becomes " << bits_of(again, i));  // a NaN is quiet
  }
}

TEST_CASE("half: f64 is rounded once to nearest, ties to even, beyond the largest to infinity") {
  std::vector<double> values;
  std::vector<int> expected;
  for (int h = 0; h < 0x7c00; ++h) {
    const double next = h + 1 == 0x7c00 ? 0x1p16 : value_of(h + 1), middle = (value_of(h) + next) / 2;
    const double around[] = {std::nextafter(middle, 0), middle, std::nextafter(middle, 1e9)};
    const int bits[] = {h, h + h % 2, h + 1};
    for (int i = 0; i < 3; ++i)
      for (int sign : {0, 0x8000}) values.push_back(sign ? -around[i] : around[i]), expected.push_back(bits[i] | sign);
  }
  for (double x : {0x1p-1074, 1e-30, 65536.0, 1e300, double{INFINITY}})
    values.push_back(x), expected.push_back(x < 1 ? 0 : 0x7c00);
  const Tensor bytes = io::to_half(from_span(std::span<const double>(values), {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i)
    if (const int found = bits_of(bytes, static_cast<int64_t>(i)); found != expected[i])
      FAIL(values[i] << " becomes " << found << ", expected " << expected[i]);
}
