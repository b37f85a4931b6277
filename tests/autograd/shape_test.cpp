// Shape functions and filled tensors at their limits: largest sizes and steps, highest ranks, which results are views.
#include "autograd/ops/shape.h"

#include "tests/autograd/room.h"

using Values = std::vector<double>;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

Tensor counting(const Dims& shape) { return reshape(arange(0, static_cast<double>(numel(shape))), shape); }

bool share(const Tensor& a, const Tensor& b) { return a.impl().storage == b.impl().storage; }

}  // namespace

TEST_CASE("steps, diagonals and parts beyond every size") {
  const Tensor x = counting({3, 3});
  CHECK(slice(x, 0, 1, kMost, kMost).to_vector<double>() == Values{3, 4, 5});
  CHECK(slice(x, 1, kLeast, kMost, kMost - 1).to_vector<double>() == Values{0, 3, 6});
  for (const int64_t beyond : {kMost, kMost - 1}) {
    CHECK(tril(x, beyond).to_vector<double>() == x.to_vector<double>());
    CHECK(tril(x, -beyond).to_vector<double>() == Values(9, 0));
    CHECK(triu(x, -beyond - 1).to_vector<double>() == x.to_vector<double>());
    CHECK(triu(x, beyond).to_vector<double>() == Values(9, 0));
    CHECK(chunk(x, beyond, 0).size() == 3);
    CHECK_THROWS_WITH(packed_attention(zeros({1, 2, 6}), beyond), Contains("does not divide"));
  }
}

TEST_CASE("if one size is 0, the others may be any number") {
  constexpr int64_t huge = int64_t{1} << 40;
  const Tensor x = zeros({huge, huge, 0});
  CHECK_THROWS_WITH(sum(x, {0, 1}), "sum: 1099511627776 x 1099511627776 passes the largest size");
  CHECK(cumsum(x, 0).shape() == x.shape());
  CHECK(softmax(x, 0).shape() == x.shape());
  CHECK(index_select(x, 1, zeros({2}, {DType::i64})).shape() == Dims{huge, 2, 0});
  CHECK_THROWS_WITH(index_select(x, 2, zeros({0}, {DType::i64})), Contains("index_select: 1099511627776 x"));
  CHECK(flatten(x, 1).shape() == Dims{huge, 0});
  CHECK(permute(x, {2, 0, 1}).shape() == Dims{0, huge, huge});
  CHECK(chunk(zeros({0, kMost}), 3, 1).size() == 3);
  CHECK((x + 1.0).shape() == x.shape());
  CHECK(add(x, x).shape() == x.shape());
  CHECK(add(x, zeros({1, 1, 0})).shape() == x.shape());
  CHECK(reshape(x, {0, huge, huge}).shape() == Dims{0, huge, huge});
  CHECK(contiguous(transpose(x, 0, 2)).shape() == Dims{0, huge, huge});
  CHECK(repeat(x, {2, 1, 1}).shape() == Dims{2 * huge, huge, 0});
}

TEST_CASE("repeat and patchify give tensors of their own") {
  const Tensor x = counting({2, 2, 2, 2}), wide = counting({2, 4, 2, 1});
  CHECK_FALSE(share(repeat(x, {1, 1, 1, 1}), x));
  CHECK_FALSE(share(repeat(x, {1, 1, 1, 1, 1}), x));
  CHECK_FALSE(share(patchify(x, 1), x));
  CHECK_FALSE(share(patchify(wide, 2), wide));
}

TEST_CASE("a softmax is row-major whatever its dimension") {
  const Tensor x = counting({2, 3, 4});
  for (int dim : {0, 1, 2}) {
    CHECK(softmax(x, dim).is_contiguous());
    CHECK(view(log_softmax(x, dim), {24}).shape() == Dims{24});
  }
}

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
