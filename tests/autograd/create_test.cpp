// Tensors of given values.
#include "autograd/ops/create.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Values = std::vector<double>;

TEST_CASE("zeros, ones, full and eye") {
  CHECK(zeros({2, 2}, {.dtype = DType::i64}).to_vector<double>() == Values{0, 0, 0, 0});
  CHECK(ones({3}).dtype() == DType::f32);
  CHECK(full({2}, 2.5, {.dtype = DType::f64}).to_vector<double>() == Values{2.5, 2.5});
  CHECK(full({}, 7).item() == 7);
  CHECK(full_like(as_strided(ones({2, 3}), {3, 2}, {1, 3}, 0), 4).to_vector<double>() == Values(6, 4));
  CHECK(eye(2, 3).to_vector<double>() == Values{1, 0, 0, 0, 1, 0});
  CHECK(eye(3, 2).to_vector<double>() == Values{1, 0, 0, 1, 0, 0});
  CHECK(eye(0).shape() == Dims{0, 0});
  CHECK_THROWS_WITH(zeros({2, -3}), Contains("-3") && Contains("[2, -3]"));
  CHECK_THROWS_WITH(full({2}, 300, {.dtype = DType::u8}), "full: 300 does not fit u8");
  CHECK_THROWS_WITH(full({2}, std::nan(""), {.dtype = DType::i64}), "full: nan does not fit i64");
  CHECK_THROWS_WITH(arange(0, 300, 1, {.dtype = DType::u8}), "arange: 299 does not fit u8");
  CHECK_THROWS_WITH(arange(2, -2, -1, {.dtype = DType::u8}), "arange: -1 does not fit u8");
}

TEST_CASE("arange counts the elements before its end") {
  CHECK(arange(4).to_vector<double>() == Values{0, 1, 2, 3});
  CHECK(arange(4).dtype() == DType::i64);
  CHECK(arange(1, 2, 0.25, {.dtype = DType::f64}).to_vector<double>() == Values{1, 1.25, 1.5, 1.75});
  CHECK(arange(5, 0, -2).to_vector<double>() == Values{5, 3, 1});
  CHECK(arange(3, 3).numel() == 0);
  const std::vector<double> tenths = arange(0, 1e5, 0.1, {.dtype = DType::f64}).to_vector<double>();
  REQUIRE(tenths.size() == 1000000);
  CHECK(tenths[999999] == 999999 * 0.1);  // no error adds up
  CHECK_THROWS_WITH(arange(0, 5, -1), Contains("-1") && Contains("5"));
  CHECK_THROWS_WITH(arange(0, 5, 0), Contains("0 to 5 in steps of 0"));
  CHECK_THROWS_WITH(arange(0, std::numeric_limits<double>::infinity()), Contains("inf"));
  CHECK_THROWS_WITH(arange(-2), Contains("-2"));
}

TEST_CASE("linspace ends exactly at its end") {
  CHECK(linspace(0, 1, 5, {.dtype = DType::f64}).to_vector<double>() == Values{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(2, 7, 1).to_vector<double>() == Values{2});
  const std::vector<double> x = linspace(-0.1, 0.3, 50001, {.dtype = DType::f64}).to_vector<double>();
  CHECK(x.front() == -0.1);
  CHECK(x.back() == 0.3);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - (-0.1 + 0.4 * double(i) / 50000)));
  CHECK(worst <= 4 * 0x1p-53 * 0.4);  // a product and a sum rounded on either side
  CHECK_THROWS_WITH(linspace(0, 1, 5, {.dtype = DType::i64}), Contains("i64"));
  CHECK_THROWS_WITH(linspace(0, 1, -5), Contains("-5"));
}
