// Copies in place and with conversion.
#include <cmath>
#include <limits>
#include <numeric>

#include "core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/nearest_bf16.h"
#include "tests/support/threads.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::nearest_bf16;

namespace {

Tensor counting(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0.f);
  return from_vector(v, {n});
}

}  // namespace

TEST_CASE("copy_into of an overlapping view writes the old values") {
  constexpr int64_t n = 300000, m = n - 70000;
  for (const int threads : {1, 4}) {
    const test::Threads guard(threads);
    Tensor x = counting(n);
    copy_into(as_strided(x, {m}, {1}, 70000), as_strided(x, {m}, {1}, 0));  // to the right
    std::vector<float> v = x.to_vector<float>();
    bool right = true;
    for (int64_t i = 0; i < n; ++i) right &= v[i] == static_cast<float>(i < 70000 ? i : i - 70000);
    CHECK(right);
    x = counting(n);
    copy_into(x, as_strided(x, {n}, {-1}, n - 1));  // back to front
    v = x.to_vector<float>();
    for (int64_t i = 0; i < n; ++i) right &= v[i] == static_cast<float>(n - 1 - i);
    CHECK(right);
  }
  // One element is copied over all, and its own place is in the middle of them. Then a transpose in place.
  const Tensor y = counting(5), z = counting(4);
  copy_into(y, as_strided(y, {1}, {1}, 2));
  CHECK(y.to_vector<float>() == std::vector<float>(5, 2));
  copy_into(as_strided(z, {2, 2}, {2, 1}, 0), as_strided(z, {2, 2}, {1, 2}, 0));
  CHECK(z.to_vector<float>() == std::vector<float>{0, 2, 1, 3});
}

TEST_CASE("copy_into refuses a destination whose elements overlap") {
  const Tensor x = counting(6);
  CHECK_THROWS_WITH(copy_into(as_strided(x, {3, 2}, {0, 1}, 0), counting(2)),
                    Contains("copy_into: elements of the destination share a place: shape [3, 2], strides [0, 1]"));
  CHECK_THROWS_WITH(copy_into(as_strided(x, {3, 2}, {1, 1}, 0), counting(2)), Contains("share a place"));
  CHECK_THROWS_WITH(copy_into(as_strided(x, {2, 2}, {-1, 1}, 3), counting(2)), Contains("share a place"));
  // A view of one element or none may have any strides.
  copy_into(as_strided(x, {1, 2}, {0, 3}, 0), counting(2));
  copy_into(as_strided(x, {0, 2}, {0, 0}, 0), counting(2));
  copy_into(as_strided(x, {2, 3}, {1, -2}, 4), counting(3));
  CHECK(x.to_vector<float>() == std::vector<float>{2, 2, 1, 1, 0, 0});
}

TEST_CASE("bf16 of a wider number is the nearest one, rounded once") {
  // Just above and below the middle between two neighbours, by less than a float can hold: 1 + 2^-8 is between 1 and 1
  // + 2^-7.
  std::vector<double> x;
  for (const double middle : {1 + 0x1p-8, 1 + 0x3p-8, -(1 + 0x1p-8), 0x1.01p100, 0x1.03p-126, 0x1.03p-130})
    for (const double toward : {0.0, 4 * middle})
      x.push_back(middle), x.push_back(std::nextafter(middle, toward)),
          x.push_back(middle * (toward == 0 ? 1 - 1e-12 : 1 + 1e-12));
  Tensor narrow = empty({static_cast<int64_t>(x.size())}, {DType::bf16});
  copy_into(narrow, from_vector(x, narrow.shape()));
  const std::vector<float> y = narrow.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    INFO(x[i]);
    CHECK(y[i] == nearest_bf16(x[i]));
    fill(narrow, x[i]);
    CHECK(narrow.to_vector<float>()[0] == y[i]);
  }
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 54);
  const std::vector<int64_t> whole = {tie, tie - 1, tie + 1, -tie, -tie - 1, 257, 259, INT64_MAX, INT64_MIN};
  narrow = empty({static_cast<int64_t>(whole.size())}, {DType::bf16});
  copy_into(narrow, from_vector(whole, narrow.shape()));
  for (size_t i = 0; i < whole.size(); ++i)
    CHECK(narrow.to_vector<float>()[i] == nearest_bf16(static_cast<long double>(whole[i])));
  // Numbers beyond the largest become infinity; NaN stays NaN.
  const double largest = 0x1.fep127, middle = 0x1.ffp127;
  narrow = empty({6}, {DType::bf16});
  copy_into(narrow, tensor({largest, std::nextafter(middle, 0), middle, 1e300, -1e300, std::nan("")}));
  const std::vector<double> ends = narrow.to_vector<double>();
  CHECK(std::vector<double>(ends.begin(), ends.end() - 1) ==
        std::vector<double>{largest, largest, HUGE_VAL, HUGE_VAL, -HUGE_VAL});
  CHECK(std::isnan(ends.back()));
}

TEST_CASE("fill refuses a value that an integer dtype does not hold") {
  const Tensor bytes = empty({2}, {DType::u8}), longs = empty({2}, {DType::i64});
  for (const double bad : {300.0, 256.0, -1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH(fill(bytes, bad), Contains("does not fit u8"));
  for (const double bad : {0x1p63, -0x1.0000000000001p63, std::nan(""), -HUGE_VAL})
    CHECK_THROWS_WITH(fill(longs, bad), Contains("does not fit i64"));
  fill(bytes, 255.9);
  CHECK(bytes.to_vector<double>() == std::vector<double>(2, 255));
  fill(longs, -0x1p63);
  CHECK(longs.to_vector<int64_t>()[1] == std::numeric_limits<int64_t>::min());
}
