// Tensors with given values, beyond their rows in tests/op_cases: exact ends, and values that an integer dtype cannot
// hold.
#include "autograd/ops/create.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("linspace ends exactly at its end, and arange adds up no errors") {
  const std::vector<double> x = linspace(-0.1, 0.3, 50001, {.dtype = DType::f64}).to_vector<double>();
  CHECK(x.front() == -0.1);
  CHECK(x.back() == 0.3);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - (-0.1 + 0.4 * double(i) / 50000)));
  CHECK(worst <= 4 * 0x1p-53 * 0.4);  // a product and a sum rounded on either side
  const std::vector<double> tenths = arange(0, 1e5, 0.1, {.dtype = DType::f64}).to_vector<double>();
  REQUIRE(tenths.size() == 1000000);
  CHECK(tenths[999999] == 999999 * 0.1);
}

TEST_CASE("without options tensors are f32, integer ranges i64; a value that a dtype cannot hold is named") {
  CHECK(ones({3}).dtype() == DType::f32);
  CHECK(arange(4).dtype() == DType::i64);
  CHECK_THROWS_WITH(full({2}, 300, {.dtype = DType::u8}), "full: 300 does not fit u8");
  CHECK_THROWS_WITH(full({2}, std::nan(""), {.dtype = DType::i64}), "full: nan does not fit i64");
  CHECK_THROWS_WITH(arange(0, 5, 0), Catch::Matchers::Contains("0 to 5 in steps of 0"));
}
