// Shape functions at the ends of what they take: largest sizes and steps, highest ranks, what is a view and what not.
#include "autograd/ops/shape.h"

#include <limits>

#include "autograd/engine.h"
#include "autograd/fused/attention.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
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

TEST_CASE("beside a size of 0 the others may be of any size") {
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

TEST_CASE("repeat takes every rank") {
  const Tensor x = counting({1, 2, 1, 1, 2});
  const Tensor y = repeat(x, {2, 1, 1, 3, 2});
  CHECK(y.shape() == Dims{2, 2, 1, 3, 4});
  Values expected;
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t d = 0; d < 3; ++d)
        for (int64_t e = 0; e < 4; ++e) expected.push_back(static_cast<double>(2 * b + e % 2));
  CHECK(y.to_vector<double>() == expected);
  const Tensor leaf = require_grad(detach(x));
  backward(sum(repeat(leaf, {2, 1, 1, 3, 2})));
  CHECK(leaf.grad().to_vector<double>() == Values(4, 12));
  CHECK(repeat(zeros({2}), {1, 1, 1, 1, 1, 1, 1, 2}).shape() == Dims{1, 1, 1, 1, 1, 1, 1, 4});
}

TEST_CASE("repeat and patchify give tensors of their own") {
  const Tensor x = counting({2, 2, 2, 2}), wide = counting({2, 4, 2, 1});
  CHECK_FALSE(share(repeat(x, {1, 1, 1, 1}), x));
  CHECK_FALSE(share(repeat(x, {1, 1, 1, 1, 1}), x));
  CHECK_FALSE(share(patchify(x, 1), x));
  CHECK_FALSE(share(patchify(wide, 2), wide));
  const Tensor leaf = require_grad(detach(x));
  backward(sum(repeat(patchify(leaf, 1), {1, 1, 1})));
  CHECK(leaf.grad().to_vector<double>() == Values(16, 1));
}

TEST_CASE("-1 in expand keeps a size") {
  const Tensor x = counting({2, 1});
  CHECK(expand(x, {-1, 3}).to_vector<double>() == Values{0, 0, 0, 1, 1, 1});
  CHECK(expand(x, {4, -1, -1}).shape() == Dims{4, 2, 1});
  CHECK(expand(counting({1, 3}), {-1, 3}).shape() == Dims{1, 3});
  CHECK_THROWS_WITH(expand(x, {-1, 2, 1}), Contains("expand: size -1 at dimension 0 of [-1, 2, 1]"));
  CHECK_THROWS_WITH(expand(x, {-2, 1}), Contains("expand: ") && Contains("[-2, 1]"));
}

TEST_CASE("a softmax is row-major whatever its dimension") {
  const Tensor x = counting({2, 3, 4});
  for (int dim : {0, 1, 2}) {
    CHECK(softmax(x, dim).is_contiguous());
    CHECK(view(log_softmax(x, dim), {24}).shape() == Dims{24});
  }
}
