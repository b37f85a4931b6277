// Embedding with padding_idx, Module::zero_grad(), and a recurrent state that is not detached.
#include "autograd/engine.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "core/random.h"
#include "nn/linear.h"
#include "nn/recurrent/recurrent.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Values = std::vector<double>;

namespace {

struct Net : nn::Module {
  nn::Linear& fc = add("fc", nn::Linear(2, 3));
  Tensor forward(const Tensor& x) override { return fc(x); }
};

}  // namespace

TEST_CASE("module: zero_grad of a module clears the gradients of its children, too") {
  Net net;
  net(ones({1, 2})).sum().backward();
  REQUIRE(net.fc.weight.grad().defined());
  net.zero_grad();
  for (const Tensor& p : net.parameters()) CHECK_FALSE(p.grad().defined());
  net.fc.freeze();
  net.zero_grad();
}

TEST_CASE("embedding: the row padding_idx begins as zeros and takes no gradient") {
  manual_seed(1);
  for (int64_t padding : {0, -5}) {
    nn::Embedding table(5, 3, {.padding_idx = padding});
    CHECK(table.weight[0].to_vector<double>() == Values{0, 0, 0});
    const Tensor y = table(tensor({{1, 0, 2}, {0, 0, 1}}));
    CHECK(y(0, 1).to_vector<double>() == Values{0, 0, 0});
    y.sum().backward();
    CHECK(table.weight.grad().sum(1).to_vector<double>() == Values{0, 6, 3, 0, 0});
    nn::Embedding copy = nn::clone(table);
    copy(tensor({0, 1})).sum().backward();
    CHECK(copy.weight.grad().sum(1).to_vector<double>() == Values{0, 3, 0, 0, 0});
    CHECK_THROWS_WITH(table.first(2), Contains("padding_idx"));
  }
  CHECK_THROWS_WITH(nn::Embedding(5, 3, {.padding_idx = 5}), Contains("padding_idx is 5, the table has 5 rows"));
}

TEST_CASE("backward: a state that goes on from step to step without detach() is refused with what to do") {
  nn::Lstm lstm({.inputs = 2, .hidden = 3});
  const Tensor x = ones({1, 2, 2});
  nn::RecurrentResult r = lstm(x);
  r.output.sum().backward();
  r = lstm(x, {.state = r.state});
  CHECK_THROWS_WITH(r.output.sum().backward(), Contains("detach() a state that comes from an earlier step"));
}
