// Shape functions at their limits: largest sizes and steps, highest ranks, which results are views.
#include "autograd/ops/shape.h"

#include <limits>

#include "autograd/fused/attention.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
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
