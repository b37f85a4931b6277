// Batches of more than two tensors, and evaluate() with targets and losses of every kind.
#include "training/steps/examples.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "io/data/loader.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "tests/support/catch.h"
#include "training/records/held_out.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;

namespace {

Tensor f64(const std::vector<double>& v, const Dims& shape) { return from_vector(v, shape); }
Tensor squared_error(nn::Module& m, const Examples& b) { return mean(square(m(b.inputs) - b.targets)); }

struct Frozen : nn::Module {
  nn::BatchNorm &a, &b;
  bool throws = false;
  Frozen() : a(add("a", nn::BatchNorm(2))), b(add("b", nn::BatchNorm(2))) {}
  Tensor forward(const Tensor& x) override {
    check(!throws, "no forward");
    return b(a(x));
  }
};

}  // namespace

TEST_CASE("examples: micro-batches take the rows of every tensor of a batch") {
  nn::Linear net(1, 1, {.bias = false});
  net.to(DType::f64);
  copy_into(net.weight, f64({2}, {1, 1}));
  const data::TensorSet set(f64({1, 2, 3, 4}, {4, 1}), f64({1, 1, 1, 1}, {4, 1}), f64({1, 0, 2, 5}, {4, 1}));
  const Examples batch = examples_of(data::Loader(set, {.rows = 4, .shuffle = false}).next());
  REQUIRE(batch.more.size() == 1);
  const Objective weighted = [](nn::Module& m, const Examples& e) {
    return mean(e.more[0] * square(m(e.inputs) - e.targets));
  };
  // (1/4) sum w (2 x - 1)^2 = (1 + 0 + 2 25 + 5 49) / 4; all numbers are whole.
  for (const int64_t parts : {1, 2, 4}) CHECK(differentiate(net, weighted, batch, parts) == 74);
  Examples uneven = batch;
  uneven.more[0] = f64({1}, {1, 1});
  CHECK_THROWS_WITH(differentiate(net, weighted, uneven, 2), Contains("a tensor [1, 1] beside 4 targets"));
  CHECK_THROWS_WITH(examples_of(std::vector{batch.inputs}), Contains("a batch of 1 tensors"));
}

TEST_CASE("evaluate: a user's loss, soft targets, and no accuracy for a regression") {
  nn::Linear net(2, 2, {.bias = false});
  net.to(DType::f64);
  copy_into(net.weight, f64({1, 0, 0, 1}, {2, 2}));
  const Tensor x = f64({0, 0, 1, 3}, {2, 2});
  const Evaluation soft = evaluate(net, {x, f64({0.5, 0.5, 0.25, 0.75}, {2, 2})}, 3);
  const double second = std::log(std::exp(1) + std::exp(3)) - 0.25 * 1 - 0.75 * 3;
  CHECK(std::abs(soft.loss - (std::log(2) + second) / 2) < 1e-14);
  CHECK((soft.step == 3 && soft.predictions == 0 && soft.right == 0));
  const Examples regression{x, f64({1, 0, 1, 1}, {2, 2})};
  CHECK_THROWS_WITH(evaluate(net, regression, 3), Contains("targets f64 [2, 2] are no probabilities"));
  CHECK_THROWS_WITH(evaluate(net, {x, f64({1, 1}, {2, 1})}, 3), Contains("give the loss"));
  const Evaluation own = evaluate(net, regression, 3, squared_error);
  CHECK((own.loss == 1.25 && own.predictions == 0));  // (1 + 0 + 0 + 4) / 4
  const Evaluation ids = evaluate(net, {x, from_vector(std::vector<int64_t>{-100, 1}, {2})}, 3, cross_entropy_of);
  CHECK((ids.predictions == 1 && ids.right == 1));
}

TEST_CASE("evaluate: each module keeps its own mode and statistics, also if something throws") {
  Frozen net;
  net.b.eval();
  const Examples batch{from_vector(std::vector<float>{1, 2, 3, 5}, {2, 2}),
                       from_vector(std::vector<int64_t>{0, 1}, {2})};
  const auto unchanged = [&] {
    for (const auto& [name, x] : Frozen().state_dict())
      CHECK(net.state_dict().at(name).to(DType::f64).to_vector<double>() == x.to(DType::f64).to_vector<double>());
    CHECK((net.training() && net.a.training() && !net.b.training()));
  };
  evaluate(net, batch, 0);
  unchanged();
  net.throws = true;
  CHECK_THROWS_WITH(evaluate(net, batch, 0), Contains("no forward"));
  CHECK_THROWS_WITH(evaluate(net, batch, 0, cross_entropy_of), Contains("no forward"));
  unchanged();
}
