// `auto h = x(Slice(), 0)`: a named result of an index is a Tensor like any other, and only a nameless one writes.
#include "tests/autograd/room.h"

using Values = std::vector<double>;

TEST_CASE("a named result of an index is assigned to without writing") {
  const Tensor x = tensor({{1., -2.}, {-3., 4.}});
  const Values before{1, -2, -3, 4};

  auto h = x(Slice(), 0);  // a view
  h = relu(h);
  CHECK(h.to_vector<double>() == Values{1, 0});
  CHECK(x.to_vector<double>() == before);
  h = x[1];
  CHECK(h.to_vector<double>() == Values{-3, 4});
  CHECK(x.to_vector<double>() == before);

  auto chosen = x[tensor({1, 0})];  // a copy
  chosen = chosen * 2;
  CHECK(chosen.to_vector<double>() == Values{-6, 8, 2, -4});
  const auto other = x[tensor({0})];
  chosen = other;
  CHECK(chosen.shape() == Dims{1, 2});
  CHECK(x.to_vector<double>() == before);
  std::move(chosen) = 7;  // no longer a place in x
  CHECK(x.to_vector<double>() == before);

  const Tensor y = x;
  y(Slice(), 0) = tensor({5., 6.});
  CHECK(x.to_vector<double>() == Values{5, -2, 6, 4});
  y[tensor({1})] = 0;
  CHECK(x.to_vector<double>() == Values{5, -2, 0, 0});
}

TEST_CASE("in place, a named view writes to its elements, as any view does") {
  const Tensor x = tensor({{1., -2.}, {-3., 4.}});
  auto h = x[0];
  h += 1;
  CHECK(x.to_vector<double>() == Values{2, -1, -3, 4});
}

TEST_CASE("a named result of an index keeps its graph when it becomes another tensor") {
  const Tensor x = require_grad(tensor({{1., -2.}, {-3., 4.}}));
  auto h = x(Slice(), 1);
  h = h * h;
  backward(h.sum());
  CHECK(x.grad().to_vector<double>() == Values{0, -4, 0, 8});
}

TEST_CASE("a backward rule's indices are checked") {
  const Tensor x = require_grad(tensor({2.}));
  Tensor y = detach(x);
  auto* n = track("twice", {&y}, {&x});
  n->backward = [](Flow& g) { g.give(-1, g.out(-1)); };
  backward(y);
  CHECK(x.grad().item() == 1);
  Tensor z = detach(x);
  n = track("twice", {&z}, {&x});
  n->backward = [](Flow& g) { g.give(0, g.out(1)); };
  CHECK_THROWS_WITH(backward(z), "twice: its rule names output 1, outputs are 0 to 0");
}

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
