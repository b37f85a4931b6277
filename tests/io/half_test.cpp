// F16: every F16 number keeps its bits when read and written; any other number is rounded to the nearest F16 number.
#include "io/half.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

const NumberFormat kF16{DType::f32, true};
constexpr int kInfinity = 0x7c00;

// The value of the bits by the formula of IEEE 754.
double value_of(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent != 31 ? std::ldexp(1024 + fraction, exponent - 25)
                                       : (fraction ? NAN : INFINITY);
  return bits >> 15 ? -size : size;
}

Tensor all_bytes() {
  Tensor bytes = empty({1 << 16, 2}, {DType::u8});
  for (int i = 0; i < 1 << 17; ++i) bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i % 2 ? i / 2 >> 8 : i / 2);
  return bytes;
}

double in_half(double x) {
  const Tensor y = rounded(full({1}, x, {DType::f64}), kF16, "x");
  REQUIRE(y.dtype() == DType::f32);
  return y.data<float>()[0];
}

}  // namespace

TEST_CASE("half: every number of F16 is read as it is, and written again as the same bytes") {
  const Tensor bytes = all_bytes(), x = io::from_half(bytes);
  REQUIRE(x.shape() == Dims{1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    const double expected = value_of(i), found = x.data<float>()[i];
    const bool nan = std::isnan(expected);
    const bool right = nan ? std::isnan(found) : found == expected && std::signbit(found) == std::signbit(expected);
    if (!right) FAIL(i << ": " << found << ", expected " << expected);
  }
  CHECK(io::to_half(x).to_vector<uint8_t>() == bytes.to_vector<uint8_t>());
  const Tensor in_f64 = rounded(x.to(DType::f64), kF16, "x");  // F16 numbers stay, infinity and NaN too
  for (int i = 0; i < 1 << 16; ++i) {
    const float a = x.data<float>()[i], b = in_f64.data<float>()[i];
    if (!(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b))) FAIL(i << ": " << b);
  }
  const Tensor turned = transpose(reshape(x, {256, 256}), 0, 1);  // any layout
  CHECK(io::to_half(turned).to_vector<uint8_t>() ==
        contiguous(transpose(reshape(bytes, {256, 256, 2}), 0, 1)).to_vector<uint8_t>());
}

TEST_CASE("half: between two numbers of F16 the nearer one counts, in the middle the even one") {
  std::vector<double> numbers, expected;
  for (int bits = 0; bits + 1 < kInfinity; ++bits) {
    const double low = value_of(bits), high = value_of(bits + 1), middle = (low + high) / 2;
    for (double sign : {1.0, -1.0})
      for (const auto& [x, y] : {std::pair(middle, bits % 2 ? high : low),
                                 {std::nextafter(middle, 0), low},
                                 {std::nextafter(middle, 1e9), high}})
        numbers.push_back(sign * x), expected.push_back(sign * y);
  }
  const Tensor found =
      rounded(from_span(std::span<const double>(numbers), {static_cast<int64_t>(numbers.size())}), kF16, "x");
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double y = found.data<float>()[i];
    if (y != expected[i] || std::signbit(y) != std::signbit(expected[i]))
      FAIL(numbers[i] << ": " << y << ", expected " << expected[i]);
  }
  CHECK(in_half(0x1p-1074) == 0);
  CHECK(in_half(std::nextafter(65520, 0)) == 65504);
  CHECK(rounded(full({2}, 1 + 0x1p-11, {DType::f32}), kF16, "x").data<float>()[1] == 1);
  CHECK(rounded(full({2}, 0x1p-133, {DType::bf16}), kF16, "x").data<float>()[1] == 0);
}

TEST_CASE("rounded: what is beyond a format is refused with the tensor, the number and the largest one") {
  CHECK_THROWS_WITH(in_half(65520), Contains("'x' holds 65520, which does not fit f16: its largest number is 65504"));
  CHECK_THROWS_WITH(in_half(-1e300), Contains("'x' holds -1e+300, which does not fit f16"));
  for (DType to : {DType::f32, DType::bf16}) {
    const double largest = largest_number(to), step = Steps(to).at(largest);
    const auto in = [&](double x) {
      return rounded(full({1}, x, {DType::f64}), to, "w").to(DType::f64).to_vector<double>()[0];
    };
    CHECK(in(largest) == largest);
    CHECK(in(std::nextafter(largest + step / 2, 0)) == largest);
    CHECK_THROWS_WITH(in(largest + step / 2),
                      Contains(text("'w' holds 3.")) && Contains(text("does not fit ", name_of(to))));
    CHECK(in(INFINITY) == INFINITY);
  }
}

TEST_CASE("formats of files: names, and the distances of their numbers") {
  for (const char* name : kFormatNames) {
    const NumberFormat f = *format_named(name);
    CHECK(name_of(f) == std::string(name));
    CHECK(Steps(f).at(1) == epsilon(f));
    CHECK(Steps(f).at(0) == smallest_step(f));
    CHECK(Steps(f).at(std::nextafter(1, 0)) == epsilon(f) / 2);
  }
  CHECK_FALSE(format_named("f8"));
  CHECK(smallest_step(kF16) == value_of(1));
  CHECK(largest_number(kF16) == value_of(kInfinity - 1));
  CHECK(largest_number(DType::f64) == std::numeric_limits<double>::max());
  CHECK(smallest_step(DType::f64) == std::numeric_limits<double>::denorm_min());
}
