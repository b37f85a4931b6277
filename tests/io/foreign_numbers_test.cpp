// Numbers of dtypes that Tensor lacks: every code of a byte, and the extreme integers.
#include "io/load_state.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

Tensor all_codes() {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(i);
  return from_vector(codes, {256});
}

// The sum of (code + 1) x value over all codes with a finite value, which is exact in f64, and the number of these
// codes.
std::pair<double, int> weighted_sum(const std::vector<double>& values) {
  double sum = 0;
  int finite = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) sum += static_cast<double>(i + 1) * values[i], ++finite;
  return {sum, finite};
}

std::vector<int64_t> integers(const char* type, std::vector<uint8_t> bytes, int64_t of_element) {
  const Dims shape = of_element == 1 ? Dims{std::ssize(bytes)} : Dims{std::ssize(bytes) / of_element, of_element};
  const Tensor x = io::numbers_of(from_vector(bytes, shape), type);
  CHECK(x.shape() == Dims{std::ssize(bytes) / of_element});
  return x.to_vector<int64_t>();
}

}  // namespace

TEST_CASE("numbers of F8: every code is the value that the package ml_dtypes has for it") {
  // Sums printed by ml_dtypes 0.6.0, whose types are float8_e4m3fn and float8_e5m2.
  const std::vector<double> e4m3 = io::numbers_of(all_codes(), "F8_E4M3").to_vector<double>(),
                            e5m2 = io::numbers_of(all_codes(), "F8_E5M2").to_vector<double>(),
                            e8m0 = io::numbers_of(all_codes(), "F8_E8M0").to_vector<double>();
  CHECK(weighted_sum(e4m3) == std::pair(-692208.0, 254));
  CHECK(weighted_sum(e5m2) == std::pair(-46137343.96875, 248));
  CHECK((std::isnan(e4m3[0x7f]) && std::isnan(e4m3[0xff])));
  CHECK((e5m2[0x7c] == INFINITY && e5m2[0xfc] == -INFINITY && std::isnan(e5m2[0x7d]) && std::isnan(e5m2[0xff])));
  CHECK((std::signbit(e4m3[0x80]) && std::signbit(e5m2[0x80])));
  for (size_t i = 0; i < 255; ++i) CHECK(e8m0[i] == std::exp2(static_cast<double>(i) - 127));
  CHECK(std::isnan(e8m0[255]));
}

TEST_CASE("BOOL and integers of one to four bytes become the same integers in i64") {
  CHECK(integers("BOOL", {0, 1}, 1) == std::vector<int64_t>{0, 1});
  CHECK(integers("I8", {0, 0x7f, 0x80, 0xff}, 1) == std::vector<int64_t>{0, 127, -128, -1});
  CHECK(integers("I16", {0xff, 0x7f, 0, 0x80, 1, 2}, 2) == std::vector<int64_t>{32767, -32768, 513});
  CHECK(integers("U16", {0xff, 0xff, 0, 0x80}, 2) == std::vector<int64_t>{65535, 32768});
  CHECK(integers("I32", {0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff}, 4) ==
        std::vector<int64_t>{2147483647, -2147483648, -1});
  CHECK(integers("U32", {0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}, 4) == std::vector<int64_t>{4294967295, 67305985});
  const Tensor bytes = from_vector(std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}, {1, 8});
  for (const char* type : {"U64", "C64"}) {
    CHECK(io::numbers_of(bytes, type).shape() == bytes.shape());
    CHECK(io::outline_of_numbers(bytes, type).shape() == bytes.shape());
  }
  CHECK(io::outline_of_numbers(bytes, "F8_E4M3").dtype() == DType::f32);
  CHECK(io::outline_of_numbers(from_vector(std::vector<uint8_t>{1, 2, 3, 4}, {1, 4}), "I32").shape() == Dims{1});
}
