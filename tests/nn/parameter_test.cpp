// Parameters: the value that the forward sees, compared with the parametrisation computed in plain numbers.
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

// exp(stored), a weight that stays positive. Counts its calls.
struct Exp : Parametrisation {
  bool rowwise = false;
  mutable int asked = 0;
  Tensor operator()(const Tensor& stored) const override { return ++asked, exp(stored); }
  bool by_rows() const override { return rowwise; }
};

// stored + other, or `other` if nothing is stored.
struct Sum : Parametrisation {
  Tensor other;
  explicit Sum(const Tensor& t) : other(t) {}
  Tensor operator()(const Tensor& stored) const override { return stored.defined() ? stored + other : other; }
  std::vector<Tensor> reads() const override { return {other}; }
};

}  // namespace

TEST_CASE("parameter: without a parametrisation the forward sees the stored tensor itself") {
  const Linear linear(3, 2);
  CHECK(linear.weight().handle() == linear.weight.handle());
  CHECK_FALSE(Parameter()().defined());
  CHECK_FALSE(Linear(3, 2, {.bias = false}).bias().defined());
}

TEST_CASE("parameter: the stored tensor is trained and saved, its image is used in the forward") {
  Linear linear(2, 1, {.bias = false});
  linear.to(DType::f64);
  copy_into(linear.weight, tensor({0.5, -1.}));
  linear.weight.parametrize(std::make_shared<Exp>());
  const Tensor x = from_vector(std::vector<double>{3, 7}, {1, 2});
  const Tensor y = linear(x);
  // Sums of two products: a few roundings of numbers below 16.
  CHECK(std::abs(y.item() - (3 * std::exp(0.5) + 7 * std::exp(-1.))) < 64 * 0x1p-52);
  CHECK(linear.state_dict().at("weight").to_vector<double>() == std::vector<double>{0.5, -1});
  optim::Sgd sgd(linear.parameters(), {.lr = 0.1});
  backward(y);
  sgd.step();  // d/dw of x exp(w) is x exp(w)
  const std::vector<double> after = linear.weight.to_vector<double>();
  CHECK(std::abs(after[0] - (0.5 - 0.1 * 3 * std::exp(0.5))) < 64 * 0x1p-52);
  CHECK(std::abs(after[1] - (-1 - 0.1 * 7 * std::exp(-1.))) < 64 * 0x1p-52);
  linear.weight.set_parametrisations({});
  CHECK(linear.weight().handle() == linear.weight.handle());
}

TEST_CASE("parameter: a parametrisation goes with the layer into its parent") {
  struct Net : Module {
    Linear& fc = add("fc", Linear(2, 2));
  } net;
  net.fc.weight.parametrize(std::make_shared<Exp>());
  const Tensor before = exp(net.state_dict().at("fc.weight"));
  CHECK(net.fc.weight().to_vector<double>() == before.to_vector<double>());
  net.to(DType::f64);
  CHECK(net.fc.weight().dtype() == DType::f64);
}

TEST_CASE("parameter: the cached image is used without a graph until its inputs change") {
  Linear linear(4, 4);
  const auto by = std::make_shared<Exp>();
  linear.weight.parametrize(by);
  linear.prepare_inference();
  const int once = by->asked;
  const Tensor x = ones({20, 4});
  linear(x);  // recorded
  CHECK(by->asked == once + 1);
  const NoGrad no_grad;
  linear(x), linear(x);
  CHECK(by->asked == once + 1);
  fill(linear.weight, 0);
  CHECK(linear.weight().to_vector<double>() == std::vector<double>(16, 1));
  linear.prepare_inference(false);
  CHECK(linear.weight().to_vector<double>() == std::vector<double>(16, 1));
}

TEST_CASE("parameter: the cached image also follows other tensors that the parametrisation reads") {
  const Tensor other = zeros({2});
  Linear linear(3, 2);
  const std::vector<double> own = linear.bias.to_vector<double>();
  linear.bias.parametrize(std::make_shared<Sum>(other));
  linear.prepare_inference();
  const NoGrad no_grad;
  CHECK(linear.bias().to_vector<double>() == own);
  fill(other, 1);
  const std::vector<double> moved = (linear.bias + other).to_vector<double>();
  CHECK(linear.bias().to_vector<double>() == moved);
}

TEST_CASE("parameter: a value may be made of nothing that is stored") {
  Linear linear(3, 2, {.bias = false});
  linear.bias.parametrize(std::make_shared<Sum>(full({2}, 5)));
  CHECK(linear(zeros({1, 3})).to_vector<double>() == std::vector<double>{5, 5});
  CHECK(linear.named_parameters().size() == 1);
}

TEST_CASE("parameter: parametrisations are applied in turn, and the tensors that any of them reads are watched") {
  const Tensor other = full({2, 3}, 0.25, {DType::f64});
  Linear linear(3, 2, {.bias = false});
  linear.to(DType::f64);
  copy_into(linear.weight, from_vector(std::vector<double>{0.5, -1, 0, 0.25, 1, -0.5}, {2, 3}));
  linear.weight.parametrize(std::make_shared<Exp>());
  linear.weight.parametrize(std::make_shared<Exp>());
  linear.weight.parametrize(std::make_shared<Sum>(other));
  CHECK(linear.weight.parametrisations().size() == 3);
  CHECK(linear.named_parameters()[0].parametrisations.size() == 3);
  std::vector<double> value, slope;  // exp(exp(w)) + 1/4, whose derivative is exp(w) exp(exp(w))
  for (const double w : linear.weight.to_vector<double>())
    value.push_back(std::exp(std::exp(w)) + 0.25), slope.push_back(std::exp(w) * std::exp(std::exp(w)));
  check_close(linear.weight(), from_vector(value, {2, 3}), 64 * 0x1p-52);
  backward(sum(linear.weight()));
  check_close(linear.weight.grad(), from_vector(slope, {2, 3}), 64 * 0x1p-52);
  linear.prepare_inference();
  const NoGrad no_grad;
  CHECK(linear.weight().handle() == linear.weight().handle());  // it is kept
  fill(other, 0);
  check_close(linear.weight(), from_vector(value, {2, 3}) - 0.25, 64 * 0x1p-52);
  linear.weight.set_parametrisations({linear.weight.parametrisations()[0]});
  check_close(linear.weight(), exp(detach(linear.weight)), 0);
}

TEST_CASE("parameter: of a table that is mapped row by row, the rows that are read are mapped") {
  Embedding table(5, 3);
  const auto by = std::make_shared<Exp>();
  table.weight.parametrize(by);
  const Tensor ids = tensor<int64_t>({4, 0, 4});
  const std::vector<double> whole = table(ids).to_vector<double>(), first = table.first(2).to_vector<double>();
  by->rowwise = true;
  CHECK(table(ids).to_vector<double>() == whole);
  CHECK(table.first(2).to_vector<double>() == first);
}

TEST_CASE("parameter: clone refuses a parametrisation that its copy would lack") {
  Linear linear(3, 2);
  linear.weight.parametrize(std::make_shared<Exp>());
  CHECK_THROWS_WITH(clone(linear), Catch::Matchers::Contains("clone: 'weight' has a parametrisation"));
}
