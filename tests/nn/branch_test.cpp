// The output of a branch: dropout, stochastic depth and layer scale, their random state and their mean.
#include "streams/transformer.h"

#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using streams::Form;
using streams::Layout;
using streams::parametrize;
using streams::Stream;

namespace {

void put_on(BranchOutput& branch, const Stream& stream) {
  parametrize(branch, Layout().writes("weight").writes("bias"), stream);
}
}  // namespace

TEST_CASE("masks are drawn alike in every form, per sample for stochastic depth, and not at all in evaluation") {
  const Stream stream(Form::crms_norm, 8);
  BranchOutput branch(5, 8, true, {.dropout = 0.4, .stochastic_depth = 0.5});
  put_on(branch, stream);
  branch.to(DType::f64);
  const Tensor x = randn({64, 3, 5}, kF64);
  Generator before = default_generator();
  const Tensor y = branch(x);
  const Generator after = default_generator();
  default_generator() = before;
  check_close(branch(x), y, 0);
  CHECK(default_generator() == after);
  const std::vector<double> sizes = amax(abs(reshape(y, {64, 3 * 7})), {1}).to_vector<double>();
  const auto left_out = std::count(sizes.begin(), sizes.end(), 0.0);
  CHECK((left_out > 16 && left_out < 48));  // 32 expected; the standard deviation is 4
  branch.eval();
  check_close(branch(x), linear(x, stream.write(branch.weight, 0), stream.write(branch.bias, 0)), 0);
  CHECK(default_generator() == after);
}

TEST_CASE("output maps of a branch's weights act after the mask, all other parametrisations before it") {
  // In training: M (mask * (exp(scale W) x + scale b)), else without the mask.
  struct Exp : Parametrisation {
    Tensor operator()(const Tensor& stored) const override { return exp(stored); }
  };
  struct Product : Parametrisation {
    Tensor m;
    explicit Product(const Tensor& m) : m(m) {}
    Tensor operator()(const Tensor& x) const override { return matmul(m, x); }
    bool is_output_map() const override { return true; }
    Tensor map_output(const Tensor& y) const override { return matmul(y, transpose(m, 0, 1)); }
  };
  BranchOutput branch(5, 4, true, {.dropout = 0.4, .layer_scale = 2});
  branch.to(DType::f64);
  copy_into(branch.scale, randn({4}, kF64));
  const auto m = std::make_shared<Product>(randn({3, 4}, kF64));
  branch.weight.parametrize(std::make_shared<Exp>());
  const Tensor scaled_exp = exp(detach(branch.weight) * unsqueeze(branch.scale, 1));
  for (Parameter* p : {&branch.weight, &branch.bias}) p->parametrize(m);
  const Tensor x = randn({6, 5}, kF64), y = linear(x, scaled_exp, detach(branch.bias) * branch.scale);
  manual_seed(5);
  const Tensor mask = dropout(ones({6, 4}, kF64), 0.4);
  manual_seed(5);
  check_close(branch(x), matmul(y * mask, transpose(m->m, 0, 1)), 64 * 0x1p-52);
  branch.eval();
  check_close(branch(x), matmul(y, transpose(m->m, 0, 1)), 256 * 0x1p-52);
}

TEST_CASE("a branch's weight and bias defer the output maps that both have, and no others") {
  // In training: mask (10 W x + b) if the weight alone is mapped, and mask (20 W x + 10 b) if a map of the weight that is
  // no output map stands last.
  struct Times : Parametrisation {
    double factor;
    bool output;
    Times(double factor, bool output) : factor(factor), output(output) {}
    Tensor operator()(const Tensor& x) const override { return x * factor; }
    bool is_output_map() const override { return output; }
    Tensor map_output(const Tensor& y) const override { return y * factor; }
  };
  BranchOutput branch(5, 4, true, {.dropout = 0.4});
  branch.to(DType::f64);
  const Tensor x = randn({6, 5}, kF64), wx = linear(x, branch.weight), b = detach(branch.bias);
  manual_seed(5);
  const Tensor mask = dropout(ones({6, 4}, kF64), 0.4);
  const auto ten = std::make_shared<Times>(10, true);
  branch.weight.parametrize(ten);
  manual_seed(5);
  check_close(branch(x), mask * (wx * 10.0 + b), 64 * 0x1p-52);
  branch.bias.parametrize(ten);
  branch.weight.parametrize(std::make_shared<Times>(2, false));
  manual_seed(5);
  check_close(branch(x), mask * (wx * 20.0 + b * 10.0), 256 * 0x1p-52);
}

TEST_CASE("a branch's dropout keeps its mean") {
  // E[keep mask y] = y: the mean over many samples is within five standard errors of the output in evaluation mode.
  const Stream stream(Form::rms_norm, 4);
  BranchOutput branch(3, 4, true, {.dropout = 0.25, .stochastic_depth = 0.5, .layer_scale = 2});
  put_on(branch, stream);
  branch.to(DType::f64);
  const int64_t samples = 40000;
  const Tensor x = randn({1, 3}, kF64), many = branch(expand(x, {samples, 3}));
  branch.eval();
  const Tensor error = mean(many, {0}) - select(branch(x), 0, 0);
  const Tensor standard = sqrt(var(many, {0})) / std::sqrt(static_cast<double>(samples));
  CHECK(amax(abs(error) / standard).item() < 5);
}

TEST_CASE("the probability of stochastic depth grows linearly to that of the last block") {
  const Vit model({.transformer = {.width = 4, .depth = 3, .heads = 1, .branch = {.stochastic_depth = 0.3}}});
  std::vector<double> found;
  for (const auto& [path, m] : model.named_modules())
    if (const auto* branch = dynamic_cast<const BranchOutput*>(m)) found.push_back(branch->options().stochastic_depth);
  const std::vector<double> expected = {0.1, 0.1, 0.2, 0.2, 0.3, 0.3};  // attention and MLP of each block
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]));
}
