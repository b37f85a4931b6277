// The closure of a node, stored inside, or in the pool if it is large; watches of ops.
#include "autograd/rule.h"

#include <array>

#include "autograd/frontier.h"
#include "core/view.h"
#include "tests/autograd/room.h"

namespace {

// Runs the rule on a node without inputs.
void run(Rule& rule) {
  autograd::Node node("test", 0, 1);
  autograd::Frontier frontier;
  Flow flow(node, frontier, false, false);
  rule(flow);
}

}  // namespace

TEST_CASE("closures of every size run, and are destroyed once") {
  const auto count = std::make_shared<int>();
  std::array<double, 100> large{};
  large[99] = 7;
  {
    Rule rule;
    CHECK_FALSE(rule);
    rule = [count](Flow&) { ++*count; };
    CHECK(rule);
    CHECK(count.use_count() == 2);
    run(rule), run(rule);
    CHECK(*count == 2);
    rule = [count, large](Flow&) { *count += static_cast<int>(large[99]); };
    CHECK(count.use_count() == 2);
    run(rule);
    CHECK(*count == 9);
    rule.clear();
    CHECK_FALSE(rule);
    CHECK(count.use_count() == 1);
    rule = [count](Flow&) {};
  }
  CHECK(count.use_count() == 1);
}

TEST_CASE("a node has the inputs and outputs of its op") {
  std::vector<Tensor> inputs, outputs;
  for (int i = 0; i < 7; ++i) inputs.push_back(tensor({1.0 + i}));
  for (const Tensor& x : inputs) require_grad(x);
  for (int i = 0; i < 5; ++i) outputs.push_back(tensor({0.0}));
  auto* n = track("many", outputs, inputs);
  n->backward = [](Flow& g) {
    for (int i = 0; i < 7; ++i) g.give(i, g.out(i % 5));
  };
  std::vector<Tensor> cotangents;
  for (int i = 0; i < 5; ++i) cotangents.push_back(tensor({10.0 + i}));
  const std::vector<Tensor> gradients = grad(outputs, inputs, cotangents);
  for (int i = 0; i < 7; ++i) CHECK(gradients[i].item() == 10 + i % 5);
}

TEST_CASE("op watch: watches nest, and the outer one may change a result before the inner one sees it") {
  const Tensor x = require_grad(tensor({2.0}));
  std::vector<std::string> seen;
  const autograd::OpWatch outer([&](const autograd::Node& node, std::span<const Tensor* const> results) {
    seen.push_back(std::string("outer ") + node.name);
    fill(detach(*results[0]), 7);
  });
  {
    const autograd::OpWatch inner([&](const autograd::Node& node, std::span<const Tensor* const> results) {
      seen.push_back(std::string("inner ") + node.name);
      CHECK(results[0]->item() == 7);
    });
    CHECK(mul(x, x).item() == 7);
  }
  exp(x);
  NoGrad no_grad;
  exp(x);  // is not recorded
  CHECK(seen == std::vector<std::string>{"outer mul", "inner mul", "outer exp"});
}
