// Choosing elements by position: values, gradients, bits, bad positions.
#include "autograd/ops/index.h"

#include <cmath>
#include <limits>
#include <random>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/system/parallel.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Values = std::vector<double>;

namespace {

constexpr TensorOptions kF64{DType::f64};

void require_gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult r = gradcheck(f, inputs);
  INFO(r.message());
  CHECK(r.ok);
}

}  // namespace

TEST_CASE("embedding takes rows and sums the gradients of equal ids in their order") {
  const Tensor table = from_vector<float>({0, 1, 10, 11, 20, 21}, {3, 2});
  const Tensor ids = from_vector<int64_t>({2, 0, 2, 2}, {2, 2});
  const Tensor rows = embedding(table, ids);
  CHECK(rows.shape() == Dims{2, 2, 2});
  CHECK(rows.to_vector<double>() == Values{20, 21, 0, 1, 20, 21, 20, 21});
  CHECK(embedding(table, from_vector<int64_t>({1}, {})).to_vector<double>() == Values{10, 11});
  CHECK(embedding(table, transpose(from_vector<int64_t>({2, 0, 1, 1}, {2, 2}), 0, 1)).to_vector<double>() ==
        Values{20, 21, 10, 11, 0, 1, 10, 11});
  Generator g{1, 0};
  require_gradcheck([&](auto& x) { return embedding(x[0], ids); }, {randn({4, 3}, kF64, g)});

  // 1e8 + 1 - 1e8 is 1 only in this order, and the row that nobody chose gets 0.
  Tensor w = zeros({3, 1});
  require_grad(w);
  backward(embedding(w, from_vector<int64_t>({1, 1, 0, 1}, {4})), from_vector<float>({1e8f, -1e8f, 5, 1}, {4, 1}));
  CHECK(w.grad().to_vector<double>() == Values{5, 1, 0});
}

TEST_CASE("the gradient of an embedding has the same bits for any number of threads") {
  Generator g{2, 0};
  Tensor w = randn({5000, 16}, {}, g);
  require_grad(w);
  const Tensor ids = randint(0, 50, {20000}, kCpu, g), cotangent = randn({20000, 16}, {}, g);
  std::vector<std::vector<float>> results;
  const int before = num_threads();
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    results.push_back(grad(embedding(w, ids), {w}, cotangent)[0].to_vector<float>());
  }
  set_num_threads(before);
  CHECK(results[1] == results[0]);
  CHECK(results[2] == results[0]);
}

TEST_CASE("a bf16 gradient is summed in f32") {
  Tensor w = zeros({1, 1}, {DType::bf16});
  require_grad(w);
  backward(embedding(w, full({1000}, 0, {DType::i64})), full({1000, 1}, 1, {DType::bf16}));
  CHECK(w.grad().item() == 1000);  // one by one in bf16 the sum would stay at 256
}

TEST_CASE("index_select and gather agree with loops over every dimension") {
  Generator g{3, 0};
  const Dims shape{3, 4, 5};
  const Tensor x = permute(randn({5, 3, 4}, kF64, g), {1, 2, 0});  // not contiguous
  const Values v = x.to_vector<double>();
  const auto at = [&](const int64_t i[3]) { return v[(i[0] * 4 + i[1]) * 5 + i[2]]; };
  for (int dim = 0; dim < 3; ++dim) {
    const Tensor ids = randint(0, shape[dim], {7}, kCpu, g);
    const std::vector<int64_t> id = ids.to_vector<int64_t>();
    const Tensor y = index_select(x, dim - 3, ids);
    Dims chosen = shape;
    chosen[dim] = 2;  // shorter than x elsewhere too
    if (dim != 1) chosen[1] = 3;
    const Tensor index = randint(0, shape[dim], chosen, kCpu, g), z = gather(x, dim, index);
    const Values vy = y.to_vector<double>(), vz = z.to_vector<double>();
    const std::vector<int64_t> vi = index.to_vector<int64_t>();
    int64_t i[3];
    size_t ey = 0, ez = 0;
    for (i[0] = 0; i[0] < y.size(0); ++i[0])
      for (i[1] = 0; i[1] < y.size(1); ++i[1])
        for (i[2] = 0; i[2] < y.size(2); ++i[2]) {
          int64_t from[3] = {i[0], i[1], i[2]};
          from[dim] = id[i[dim]];
          CHECK(vy[ey++] == at(from));
        }
    for (i[0] = 0; i[0] < z.size(0); ++i[0])
      for (i[1] = 0; i[1] < z.size(1); ++i[1])
        for (i[2] = 0; i[2] < z.size(2); ++i[2]) {
          int64_t from[3] = {i[0], i[1], i[2]};
          from[dim] = vi[ez];
          CHECK(vz[ez++] == at(from));
        }
    require_gradcheck([&](auto& t) { return index_select(t[0], dim, ids); }, {x});
    require_gradcheck([&](auto& t) { return gather(t[0], dim, index); }, {x});
  }
  CHECK(gather(x.to(DType::i64), 0, zeros({0, 4, 5}, {DType::i64})).numel() == 0);
}

TEST_CASE("one_hot and masked_fill") {
  const Tensor hot = one_hot(from_vector<int64_t>({2, 0}, {2}), 3);
  CHECK(hot.dtype() == DType::i64);
  CHECK(hot.to_vector<double>() == Values{0, 0, 1, 1, 0, 0});
  const Tensor x = from_vector<double>({1, 2, 3, 4}, {2, 2}), mask = from_vector<uint8_t>({0, 1}, {2});
  CHECK(masked_fill(x, mask, -INFINITY).to_vector<double>() == Values{1, -INFINITY, 3, -INFINITY});
  require_gradcheck([&](auto& t) { return masked_fill(t[0], mask, 5); }, {x});
  CHECK_THROWS_WITH(masked_fill(x, zeros({2, 2, 2}, {DType::u8}), 0), Contains("[2, 2, 2]") && Contains("to [2, 2]"));
}

TEST_CASE("topk agrees with sorting, ties and NaN included") {
  Generator g{5, 0};
  const Tensor x = randint(0, 6, {4, 30, 3}, kCpu, g);  // many ties
  Tensor f = x.to(DType::f64);
  f.mutable_data<double>()[3 * 17 + 1] = std::nan("");
  const Values v = f.to_vector<double>();
  for (int64_t k : {1, 2, 13, 30}) {
    const auto [values, indices] = topk(f, k, 1);
    CHECK(values.shape() == Dims{4, k, 3});
    const std::vector<int64_t> got = indices.to_vector<int64_t>();
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < 3; ++c) {
        std::vector<int64_t> order(30);
        for (int64_t j = 0; j < 30; ++j) order[j] = j;
        const auto key = [&](int64_t j) {
          return std::isnan(v[(r * 30 + j) * 3 + c]) ? 1e300 : v[(r * 30 + j) * 3 + c];
        };
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
        for (int64_t j = 0; j < k; ++j)
          if (got[(r * k + j) * 3 + c] != order[j]) FAIL("k " << k << " row " << r << " column " << c << " at " << j);
      }
    }
  }
  const Tensor y = randn({3, 6}, kF64, g);
  require_gradcheck([](auto& t) { return topk(t[0], 2).values; }, {y});
  CHECK(topk(y, 0).values.shape() == Dims{3, 0});
  CHECK_THROWS_WITH(topk(y, 7), Contains("k = 7") && Contains("[0, 6]"));
}

TEST_CASE("a position that does not exist is named together with the size") {
  const Tensor table = zeros({10, 2}), bad = from_vector<int64_t>({3, 10, -1}, {3});
  CHECK_THROWS_WITH(embedding(table, bad), Contains("embedding: id 10 at element 1") && Contains("size 10"));
  CHECK_THROWS_WITH(index_select(table, 1, tensor<int64_t>({1, -1})), Contains("id -1") && Contains("size 2"));
  CHECK_THROWS_WITH(gather(table, 1, full({3, 1}, 2, {DType::i64})), Contains("id 2") && Contains("size 2"));
  CHECK_THROWS_WITH(gather(table, 1, zeros({11, 1}, {DType::i64})), Contains("[11, 1]") && Contains("[10, 2]"));
  CHECK_THROWS_WITH(one_hot(bad, 10), Contains("id 10") && Contains("classes"));
  CHECK_THROWS_WITH(embedding(table, zeros({2})), Contains("f32"));
  CHECK_THROWS_WITH(embedding(zeros({3}), bad), Contains("[3]"));
  CHECK_THROWS_WITH(index_select(table, 0, zeros({1, 1}, {DType::i64})), Contains("[1, 1]"));
  CHECK_THROWS_WITH(gather(table, 2, bad), Contains("dimension 2"));
}

TEST_CASE("the smallest i64, which NaN becomes, is no position") {
  const Tensor least = full({1}, -0x1p63, {DType::i64}), bytes = ones({4}, {DType::u8});
  CHECK_THROWS_WITH(index_select(bytes, 0, least), Contains("index_select: id -9223372036854775808"));
  CHECK_THROWS_WITH(gather(bytes, 0, least), Contains("gather: id -9223372036854775808"));
  CHECK_THROWS_WITH(embedding(ones({4, 2}), least), Contains("embedding: id -9223372036854775808"));
  CHECK_THROWS_WITH(one_hot(least, 4), Contains("one_hot: id -9223372036854775808"));
  CHECK_THROWS_WITH(cross_entropy(ones({1, 4}), least), Contains("cross_entropy: id -9223372036854775808"));
  // Where it is the target to be ignored, it is that.
  const CrossEntropyOptions ignored{.ignore_index = std::numeric_limits<int64_t>::min(), .reduction = Reduction::sum};
  CHECK(cross_entropy(ones({1, 4}), least, ignored).item() == 0);
}
