// Integers beyond 2^53, which f64 rounds: ops compute and compare them as integers, or refuse.
#include <cstdint>

#include "core/print.h"
#include "tests/autograd/room.h"

using test::thrown;
using Integers = std::vector<int64_t>;

namespace {

constexpr int64_t kEven = int64_t{1} << 53, kOdd = kEven + 1;  // equal as doubles
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

Integers values(const Tensor& x) { return x.to_vector<int64_t>(); }

}  // namespace

TEST_CASE("large integers: equal() and allclose() see a difference of 1") {
  const Tensor a = tensor({kEven, kMost, kLeast}), b = tensor({kOdd, kMost - 1, kLeast + 1});
  CHECK_FALSE(equal(a, b));
  CHECK_FALSE(allclose(a, b, 0, 0));
  CHECK(values(isclose(a, b, 0, 0.5)) == Integers{0, 0, 0});
  CHECK(values(isclose(a, b, 0, 1)) == Integers{1, 1, 1});
  CHECK(allclose(a, a, 0, 0));
  // The largest difference, 2^64 - 1, rounds to 2^64. |b| = 2^63 allows half of it.
  CHECK(values(isclose(tensor({kMost}), tensor({kLeast}), 1.999, 0)) == Integers{0});
  CHECK(values(isclose(tensor({kMost}), tensor({kLeast}), 2, 0)) == Integers{1});
  CHECK(values(isclose(tensor({-3, 5}), tensor({4, 5}), 0, 6.5)) == Integers{0, 1});
}

TEST_CASE("large integers: numbers combined with a tensor keep their value") {
  const Tensor x = tensor({kEven, kOdd, kOdd + 1});
  CHECK(values(x == kOdd) == Integers{0, 1, 0});
  CHECK(values(x != kOdd) == Integers{1, 0, 1});
  CHECK(values(x < kOdd) == Integers{1, 0, 0});
  CHECK(values(kOdd <= x) == Integers{0, 1, 1});
  CHECK(values(x >= static_cast<uint64_t>(kOdd)) == Integers{0, 1, 1});
  CHECK(values(tensor({kMost, kLeast}) == kMost) == Integers{1, 0});
  CHECK(values(tensor({kMost, kLeast}) < 0x1p63) == Integers{1, 1});
  CHECK(values(tensor({kMost, kLeast}) == 0x1p63) == Integers{0, 0});
  CHECK(values(tensor({kMost, kLeast}) <= -0x1p63) == Integers{0, 1});
  CHECK(values(tensor({kMost}) < std::numeric_limits<uint64_t>::max()) == Integers{1});
  CHECK(values(tensor({kMost}) > -HUGE_VAL) == Integers{1});
  CHECK(values(tensor({1, 2}) > NAN) == Integers{0, 0});

  CHECK(values(x + 1) == Integers{kOdd, kOdd + 1, kOdd + 2});
  CHECK(values(tensor({1, 2}) + kEven) == Integers{kOdd, kOdd + 1});
  CHECK(values(tensor({1}) - kOdd) == Integers{-kEven});
  CHECK(values(kOdd - tensor({1})) == Integers{kEven});
  CHECK(values(tensor({1}) * kOdd) == Integers{kOdd});
  CHECK(values(x % kOdd) == Integers{kEven, 0, 1});
  CHECK(values(maximum(x, kOdd)) == Integers{kOdd, kOdd, kOdd + 1});
  CHECK(values(clamp(x, kOdd, kMost)) == Integers{kOdd, kOdd, kOdd + 1});
  CHECK(values(where(x == kEven, kOdd + 2, x)) == Integers{kOdd + 2, kOdd, kOdd + 1});
  CHECK(values(masked_fill(x, x == kEven, kMost)) == Integers{kMost, kOdd, kOdd + 1});
  CHECK(values(full({2}, kOdd, {DType::i64})) == Integers{kOdd, kOdd});
  CHECK(values(full_like(x, kLeast)) == Integers{kLeast, kLeast, kLeast});
  CHECK(values(pad(tensor({1}), {{0, 1}}, kOdd)) == Integers{1, kOdd});
  Tensor y = zeros({3}, {DType::i64});
  fill(y, kOdd);
  y[0] = kMost;
  y += kEven - kOdd;
  CHECK(values(y) == Integers{kMost - 1, kEven, kEven});
  // A floating tensor rounds the number to its dtype.
  CHECK((tensor({0.5}) + kOdd).item() == static_cast<double>(kEven));
  CHECK((tensor({0.5f}) == kOdd).item() == 0);
}

TEST_CASE("large integers: a double that is no integer, and an integer that is no double, are refused") {
  CHECK(thrown([] { tensor({kOdd}).item(); }) == "item: 9007199254740993 is no double; item<int64_t>() gives it");
  CHECK_THAT(thrown([] { tensor({kMost}).item(); }), Contains("item: 9223372036854775807 is no double"));
  CHECK(tensor({kEven}).item() == 0x1p53);
  CHECK(tensor({kLeast}).item() == -0x1p63);
  CHECK(tensor({kOdd}).item<int64_t>() == kOdd);
  CHECK_THAT(thrown([] { tensor({1}) + 0x1p63; }), Contains("is not a whole number, the tensor is i64"));
  CHECK_THAT(thrown([] { full({1}, std::numeric_limits<uint64_t>::max(), {DType::i64}); }),
             Contains("does not fit i64"));
  CHECK_THAT(thrown([] { full({1}, kOdd, {DType::u8}); }), Contains("9007199254740993 does not fit u8"));
  CHECK_THAT(thrown([] { arange(0x1p53, 0x1p53 + 4, 1, {DType::i64}); }),
             Contains("arange: 9.00719925e+15 is not below 2^53"));
  CHECK_THROWS(arange(0x1p53 - 2, 0x1p53 + 2, 1, {DType::i64}));  // 2^53 + 1 would be 2^53
  CHECK_THROWS(arange(-0x1p53, 0, 0x1p53, {DType::i64}));
  CHECK(values(arange(0x1p53 - 2, 0x1p53, 1, {DType::i64})) == Integers{kEven - 2, kEven - 1});
  CHECK(values(kEven + arange(3)) == Integers{kEven, kOdd, kOdd + 1});
}

TEST_CASE("large integers: reductions, order and text are exact") {
  const Tensor x = tensor({kOdd, kEven, kOdd + 1});
  CHECK(sum(tensor({kEven, int64_t{1}})).item<int64_t>() == kOdd);
  CHECK(prod(tensor({kOdd, int64_t{3}})).item<int64_t>() == 3 * kOdd);
  CHECK(values(cumsum(tensor({kEven, int64_t{1}}), 0)) == Integers{kEven, kOdd});
  CHECK(argmax(tensor({kEven, kOdd})).item() == 1);
  CHECK(argmin(tensor({kOdd, kEven})).item() == 1);
  CHECK(values(sort(x).values) == Integers{kEven, kOdd, kOdd + 1});
  CHECK(values(topk(x, 1).values) == Integers{kOdd + 1});
  CHECK(median(x).item<int64_t>() == kOdd);
  CHECK(values(unique(tensor({kOdd, kEven, kOdd}))) == Integers{kEven, kOdd});
  CHECK(values(bincount(tensor({0, 0}), tensor({kEven, int64_t{1}}))) == Integers{kOdd});
  CHECK(values(tensor({kLeast}) % tensor({kEven})) == Integers{0});
  CHECK(values(abs(tensor({-kOdd}))) == Integers{kOdd});
  CHECK(to_string(tensor({kOdd})) == "[9007199254740993]  i64 [1]");
}
