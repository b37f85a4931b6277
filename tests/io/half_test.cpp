// F16: every number of it is read as it is.
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

}  // namespace

TEST_CASE("half: every number of F16 is read as it is") {
  Tensor bytes = empty({1 << 16, 2}, {DType::u8});
  for (int i = 0; i < 1 << 17; ++i) bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i % 2 ? i / 2 >> 8 : i / 2);
  const Tensor x = io::from_half(bytes);
  REQUIRE(x.shape() == Dims{1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    const double expected = value_of(i), found = x.data<float>()[i];
    const bool nan = std::isnan(expected);
    const bool right = nan ? std::isnan(found) : found == expected && std::signbit(found) == std::signbit(expected);
    if (!right) FAIL(i << ": " << found << ", expected " << expected);
  }
}
