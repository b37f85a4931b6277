// nn::shared(): one module as a part of two models.
#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "nn/container.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

bool same(const Tensor& x, const Tensor& y) { return x.handle() == y.handle(); }

struct ActorCritic : nn::Module {
  nn::Linear trunk_{2, 2};
  nn::Sequential& actor = add("actor", nn::Sequential(nn::shared(trunk_), nn::Linear(2, 3)));
  nn::Sequential& critic = add("critic", nn::Sequential(nn::shared(trunk_), nn::Linear(2, 1)));
  ActorCritic rebuild() const { return ActorCritic(); }
};

}  // namespace

TEST_CASE("shared: two models train one part, which an optimizer of both has once") {
  nn::Linear trunk(2, 2);
  nn::Sequential actor(nn::shared(trunk), nn::Linear(2, 3)), critic(nn::shared(trunk), nn::Linear(2, 1));
  const std::vector<Tensor> of_actor = actor.parameters(), of_critic = critic.parameters();
  CHECK(of_actor.size() == 4);
  CHECK(same(of_actor[0], trunk.weight));
  CHECK(same(of_critic[1], trunk.bias));
  std::vector<Tensor> all = of_actor;
  all.insert(all.end(), of_critic.begin(), of_critic.end());
  optim::Sgd sgd(all, {.lr = 1});
  CHECK(sgd.parameters().size() == 6);
  // For one row, d (sum of actor + sum of critic) / d trunk.bias_j is the sum of column j over both heads.
  const Tensor x = ones({1, 2});
  const std::vector<double> before = trunk.bias.to_vector<double>();
  const auto a = of_actor[2].to_vector<double>(), c = of_critic[2].to_vector<double>();
  backward(sum(actor(x)) + sum(critic(x)));
  sgd.step();
  const std::vector<double> after = trunk.bias.to_vector<double>();
  for (size_t j = 0; j < 2; ++j)
    CHECK(after[j] == Approx(before[j] - (a[j] + a[2 + j] + a[4 + j] + c[j])).margin(1e-6));
  CHECK_THROWS_WITH(optim::Sgd({{of_actor, {.lr = 1}}, {of_critic, {.lr = 2}}}),
                    Contains("a parameter of shape [2, 2] is in group 0 and in group 1"));
}

TEST_CASE("shared: a model of both lists and saves the part once; a clone shares its own") {
  ActorCritic net;
  CHECK(net.parameter_count() == 6 + 9 + 3);
  CHECK(net.state_dict().size() == 6);
  CHECK(net.named_parameters()[0].aliases == std::vector<std::string>{"critic.0.weight"});
  const ActorCritic copy = nn::clone(net);
  CHECK(copy.parameters().size() == 6);
  CHECK_FALSE(same(copy.parameters()[0], net.parameters()[0]));
  CHECK(same(copy.actor.parameters()[0], copy.critic.parameters()[0]));
  CHECK(copy.parameters()[0].to_vector<double>() == net.parameters()[0].to_vector<double>());
}

TEST_CASE("shared: buffers, dtype, frozen tensors and children are the other's") {
  nn::Sequential trunk(nn::Linear(2, 3), nn::BatchNorm(3));
  trunk.to(DType::f64);
  trunk.children()[0]->freeze();
  trunk.eval();
  nn::Sequential twin = nn::shared(trunk);
  CHECK_FALSE(twin.training());
  const auto a = trunk.named_state(), b = twin.named_state();
  REQUIRE(a.size() == 6);
  REQUIRE(b.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(same(a[i].tensor, b[i].tensor));
  CHECK_FALSE(requires_grad(b[0].tensor));
  trunk.train();
  trunk(ones({4, 2}, {DType::f64}));  // updates the running statistics for both models
  CHECK(twin.state_dict().at("1.running_mean").to_vector<double>() ==
        trunk.state_dict().at("1.running_mean").to_vector<double>());
}
