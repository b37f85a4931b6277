// Statistics, comparisons and losses of probabilities: the values that PyTorch 2 prints for the same calls.
#include "tests/autograd/room.h"

using Values = std::vector<double>;

TEST_CASE("distinct values, counts and positions are PyTorch's") {
  const Unique u = unique_all(tensor({3, 1, 3, 2}));
  CHECK(u.values.to_vector<int64_t>() == std::vector<int64_t>{1, 2, 3});
  CHECK(u.inverse.to_vector<int64_t>() == std::vector<int64_t>{2, 0, 2, 1});
  CHECK(u.counts.to_vector<int64_t>() == std::vector<int64_t>{1, 1, 2});
  CHECK(unique(tensor<double>({1, NAN, NAN})).numel() == 3);
  CHECK(unique(empty({0})).numel() == 0);
  CHECK(nonzero(tensor({{1, 0}, {0, 2}})).to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1, 1});
  CHECK(nonzero(ones({})).shape() == Dims{1, 0});
  CHECK(bincount(tensor({1, 2, 2}), {}, 5).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2, 0, 0});
  CHECK(bincount(tensor({1, 2, 2}), tensor({0.5, 1., 2.})).to_vector<double>() == Values{0, 0.5, 3});
  CHECK(bincount(empty({0}, {DType::i64})).numel() == 0);
}

TEST_CASE("the median and the standard deviation are PyTorch's") {
  const TopK m = median(tensor<double>({{4, 1, 3, 2}, {1, NAN, 3, NAN}}), 1);
  CHECK(m.values.to_vector<double>()[0] == 2);
  CHECK(std::isnan(m.values.to_vector<double>()[1]));
  CHECK(m.indices.to_vector<int64_t>() == std::vector<int64_t>{3, 1});
  CHECK(median(tensor({3, -1, 2})).item() == 2);
  CHECK(isonorm::std(tensor({1., 2., 4.})).item() == Approx(std::sqrt(7. / 3)).epsilon(1e-15));
  const Tensor x = require_grad(ones({3}, {DType::f64}));
  backward(isonorm::std(x));
  CHECK(x.grad().to_vector<double>() == Values{0, 0, 0});
}

TEST_CASE("agreement is PyTorch's") {
  const Tensor x = tensor({1., 2., HUGE_VAL}), y = tensor({1. + 5e-6, 2., HUGE_VAL});
  CHECK(allclose(x, y));
  CHECK_FALSE(allclose(x, y, 1e-7, 0));
  CHECK_FALSE(allclose(x, tensor<double>({1, 2, NAN})));
  CHECK_FALSE(allclose(full({1}, NAN), full({1}, NAN)));
  CHECK(allclose(full({1}, NAN), full({1}, NAN), 0, 0, true));
  CHECK(equal(x, x));
  CHECK_FALSE(equal(x, y));
  CHECK_FALSE(equal(x, reshape(x, {1, 3})));
  CHECK_FALSE(equal(tensor({1}), tensor({1.})));
  CHECK_FALSE(equal(full({1}, NAN), full({1}, NAN)));
}

TEST_CASE("cross_entropy is nll_loss of log_softmax, values and gradients, whatever the options") {
  Generator g{3, 0};
  const Tensor logits = randn({4, 3}, {DType::f64}, g), target = tensor({0, 2, -100, 1});
  const Tensor a = require_grad(clone(logits)), b = require_grad(clone(logits));
  for (Reduction r : {Reduction::mean, Reduction::sum})
    for (const Tensor& weight : {Tensor(), tensor({0.5, 1., 2.})}) {
      const Tensor one = cross_entropy(a, target, {.reduction = r, .weight = weight});
      const Tensor other = nll_loss(log_softmax(b), target, {.reduction = r, .weight = weight});
      CHECK(one.item() == Approx(other.item()).epsilon(1e-14));
      const Tensor da = grad({one}, {a})[0], db = grad({other}, {b})[0];
      CHECK(allclose(da, db, 1e-13, 1e-15));
    }
}

TEST_CASE("binary_cross_entropy at the ends has PyTorch's finite values and gradients") {
  const Tensor p = require_grad(tensor({0., 1., 0.25})), t = tensor({1., 1., 0.});
  const Tensor losses = binary_cross_entropy(p, t, Reduction::none);
  CHECK(losses.to_vector<double>()[0] == 100);
  CHECK(losses.to_vector<double>()[1] == 0);
  CHECK(losses.to_vector<double>()[2] == Approx(-std::log(0.75)).epsilon(1e-15));
  backward(sum(losses));
  CHECK(p.grad().to_vector<double>()[0] == Approx(-1e12).epsilon(1e-15));
  CHECK(p.grad().to_vector<double>()[1] == 0);
  CHECK(p.grad().to_vector<double>()[2] == Approx(1 / 0.75).epsilon(1e-15));
}
