// Positions beyond their rows in tests/op_cases: the order of sums, and values that are not positions.
#include "autograd/ops/index.h"

#include <limits>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "tests/support/catch.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using Values = std::vector<double>;

TEST_CASE("an embedding sums the gradients of equal ids in order, bf16 gradients in f32") {
  // 1e8 + 1 - 1e8 is 1 only in this order, and the row that nobody chose gets 0.
  const Tensor w = require_grad(zeros({3, 1})), low = require_grad(zeros({1, 1}, {DType::bf16}));
  backward(embedding(w, from_vector<int64_t>({1, 1, 0, 1}, {4})), from_vector<float>({1e8f, -1e8f, 5, 1}, {4, 1}));
  CHECK(w.grad().to_vector<double>() == Values{5, 1, 0});
  backward(embedding(low, full({1000}, 0, {DType::i64})), full({1000, 1}, 1, {DType::bf16}));
  CHECK(low.grad().item() == 1000);  // one by one in bf16 the sum would stay at 256
}

TEST_CASE("the smallest i64, which NaN becomes, is no position") {
  const Tensor least = full({1}, -0x1p63, {DType::i64}), bytes = ones({4}, {DType::u8});
  const auto refused = [](const std::string& name, auto call) {
    CHECK_THAT(test::thrown(call), Catch::Matchers::Contains(name + ": id -9223372036854775808"));
  };
  refused("index_select", [&] { index_select(bytes, 0, least); });
  refused("gather", [&] { gather(bytes, 0, least); });
  refused("embedding", [&] { embedding(ones({4, 2}), least); });
  refused("one_hot", [&] { one_hot(least, 4); });
  refused("cross_entropy", [&] { cross_entropy(ones({1, 4}), least); });
  // If it is ignore_index, it is ignored.
  const CrossEntropyOptions ignored{.ignore_index = std::numeric_limits<int64_t>::min(), .reduction = Reduction::sum};
  CHECK(cross_entropy(ones({1, 4}), least, ignored).item() == 0);
}
