// Methods that PyTorch's tensors have: each equals the free function of the same name.
#include "tests/autograd/room.h"

using Values = std::vector<double>;

TEST_CASE("item<T> is exact for integers, and false or true for bool") {
  CHECK(tensor({INT64_MAX}).item<int64_t>() == INT64_MAX);
  CHECK(tensor({2.75}).item<float>() == 2.75F);
  CHECK(tensor({2.75}).item<int>() == 2);
  CHECK(tensor({0.5}).item<bool>());
  CHECK_FALSE(tensor(0).item<bool>());
  CHECK_THROWS_WITH(tensor({1, 2}).item<int>(), Contains("item: the tensor has shape [2], expected one element"));
  CHECK_THROWS_WITH(tensor({300}).item<uint8_t>(), Contains("300 does not fit an unsigned integer of 8 bits"));
}

TEST_CASE("more methods are the free functions") {
  const Tensor x = tensor({{1., -2., 3.}, {4., 5., -6.}}), y = tensor({{2., -2., 0.5}, {4., 6., 1.}});
  const Tensor ids = tensor({1, 0}), index = tensor({{2, 0}, {1, 1}}), src = tensor({{7., 8.}, {9., 10.}});
  const std::pair<Tensor, Tensor> pairs[] = {
      {x.logsumexp(1), logsumexp(x, {1})},
      {x.topk(2).values, topk(x, 2).values},
      {x.sort(0, true).indices, sort(x, 0, true).indices},
      {x.argsort(), argsort(x)},
      {x.masked_select(x > 0), masked_select(x, x > 0)},
      {x.index_select(0, ids), index_select(x, 0, ids)},
      {x.gather(1, index), gather(x, 1, index)},
      {x.scatter(1, index, src), scatter(x, 1, index, src)},
      {x.scatter_add(1, index, src), scatter_add(x, 1, index, src)},
      {x.index_add(1, ids, src), index_add(x, 1, ids, src)},
      {x.log_softmax(0), log_softmax(x, 0)},
      {x.median(1).indices, median(x, 1).indices},
      {x.quantile(0.3), quantile(x, 0.3)},
      {x.quantile(0.3, 1, true), quantile(x, 0.3, 1, true)},
      {x.max(), amax(x)},
      {x.min(), amin(x)},
      {x.max(1).values, amax(x, {1})},
      {x.max(1).indices, argmax(x, 1)},
      {x.max(0, true).indices, argmax(x, 0, true)},
      {x.min(-1, true).values, amin(x, {1}, true)},
      {x.min(-1).indices, argmin(x, 1)},
      {x[0].diag(1), diag(x[0], 1)},
      {x.t(), transpose(x, 0, 1)},
      {x(0).expand_as(x), expand(x(0), {2, 3})},
      {tensor({1, 2, 3, 4, 5, 6}).view_as(x), tensor({{1, 2, 3}, {4, 5, 6}})},
      {x.slice(1, 1), x(Slice(), Slice(1))},
      {x.slice(1, -2, -1), x(Slice(), Slice(-2, -1))},
      {x.slice(1, {}, {}, 2), x(Slice(), Slice(None, None, 2))},
      {x.slice(), x},
      {x.narrow(1, 1, 2), narrow(x, 1, 1, 2)},
      {x.select(1, -1), select(x, 1, -1)},
      {x.split({1, 2}, 1)[1], split(x, {1, 2}, 1)[1]},
      {x.chunk(2)[1], chunk(x, 2, 0)[1]},
      {x.unbind()[1], x[1]},
      {x.unfold(1, 2, 1), unfold(x, 1, 2, 1)},
      {x.flip({0}), flip(x, {0})},
      {x.repeat({2, 1}), repeat(x, {2, 1})},
      {x.repeat_interleave(2, 0), repeat_interleave(x, 2, 0)},
      {tensor({{1, 2}, {3, 4}}).repeat_interleave(2), tensor({1, 1, 2, 2, 3, 3, 4, 4})},
      {x.tril(), tril(x)},
      {x.triu(1), triu(x, 1)},
      {x[0].dot(y[0]), dot(x[0], y[0])},
      {x.abs().pow(y), pow(abs(x), y)},
      {x.clamp_min(0), clamp_min(x, 0)},
      {x.clamp_max(2), clamp_max(x, 2)},
      {x.sign(), sign(x)},
      {(x / 4.0).floor(), floor(x / 4.0)},
      {(x / 4.0).ceil(), ceil(x / 4.0)},
      {(x / 4.0).round(), round(x / 4.0)},
      {x.expm1(), expm1(x)},
      {x.abs().log2(), log2(abs(x))},
      {x.abs().log1p(), log1p(abs(x))},
      {x.abs().rsqrt(), rsqrt(abs(x))},
      {x.reciprocal(), reciprocal(x)},
      {x.sin(), sin(x)},
      {x.cos(), cos(x)},
      {x.erf(), erf(x)},
      {x.minimum(y), minimum(x, y)},
      {x.maximum(y), maximum(x, y)},
      {(x > 0).logical_not(), x <= 0}};
  int number = 0;
  for (const auto& [method, function] : pairs) {
    INFO("pair " << number++);
    CHECK(equal(method, function));
  }
  CHECK_THROWS_WITH(x[0].t(), Contains("t: shape is [3], expected a matrix"));
}

TEST_CASE("more methods carry gradients") {
  const Tensor x = tensor({{1., 2., 3.}}).require_grad();
  (x.gather(1, tensor({{2}})) * x.select(1, 0)).sum().backward();
  CHECK(x.grad().to_vector<double>() == Values{3, 0, 1});
}

TEST_CASE("max of a dimension gives the whole gradient to the chosen element, of equal ones the first") {
  const Tensor x = tensor({{1., 3., 3.}, {2., 0., 1.}}).require_grad();
  const auto [values, indices] = x.max(1);
  CHECK(values.to_vector<double>() == Values{3, 2});
  values.sum().backward();
  CHECK(x.grad().to_vector<double>() == Values{0, 1, 0, 1, 0, 0});
}

TEST_CASE("std::tie() takes a result of two tensors") {
  const Tensor x = tensor({{1., 5., 3.}, {4., 2., 6.}});
  Tensor values, indices;
  std::tie(values, indices) = x.min(0);
  CHECK(values.to_vector<double>() == Values{1, 2, 3});
  CHECK(indices.to_vector<double>() == Values{0, 1, 0});
}
