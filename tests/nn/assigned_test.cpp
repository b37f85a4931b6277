// Assignments to the parameters and buffers of a module.
#include "nn/container.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {
struct Net : Module {
  Linear& fc = add("fc", Linear(3, 2, {.bias = false}));
  BatchNorm& bn = add("bn", BatchNorm(2));
  Tensor forward(const Tensor& x) override { return bn(fc(x)); }
};

// The module must refuse the parameter, by its name: in the forward, when saved, and when passed to an optimizer.
void refuses(Net& net, const std::string& parameter, const std::string& why) {
  CHECK_THROWS_WITH(net(ones({4, 3})), Contains(parameter.substr(3)) && Contains(why));
  CHECK_THROWS_WITH(net.state_dict(), Contains("'" + parameter + "' " + why));
  CHECK_THROWS_WITH(net.parameters(), Contains("'" + parameter + "' " + why));
  CHECK_THROWS_WITH(clone(net), Contains("'" + parameter + "' " + why));
}
}  // namespace

TEST_CASE("assigned: what is no leaf is refused by the parameter's name") {
  {
    Net net;
    net.fc.weight = net.fc.weight * 0.5;
    refuses(net, "fc.weight", "was assigned the result of 'mul', expected a leaf");
  }
  {
    Net net;
    Tensor& w = net.fc.weight;
    for (int i = 0; i < 4; ++i) w = w * 0.5;  // freed tensors, whose addresses are used again
    refuses(net, "fc.weight", "was assigned the result of 'mul', expected a leaf");
  }
  {
    Net net;
    const NoGrad no_grad;
    net.fc.weight = net.fc.weight * 0.5;
    refuses(net, "fc.weight", "was assigned a tensor without require_grad(), expected a leaf");
  }
}

TEST_CASE("assigned: another shape or dtype, and a parameter that the module has not, are refused") {
  Net net;
  net.fc.weight = require_grad(ones({3, 2}));
  refuses(net, "fc.weight", "was assigned [3, 2] f32 on cpu, expected [2, 3] f32 on cpu");
  net.fc.weight = require_grad(ones({2, 3}, {DType::f64}));
  refuses(net, "fc.weight", "was assigned [2, 3] f64 on cpu, expected [2, 3] f32 on cpu");
  net.fc.weight = require_grad(ones({2, 3}));
  CHECK(net(ones({4, 3})).defined());
  CHECK_FALSE(net.fc.bias.defined());
  net.fc.bias = require_grad(zeros({2}));
  refuses(net, "fc.bias", "was made without a tensor, and was assigned one");
}

TEST_CASE("assigned: a parametrised parameter refuses, and keeps its tensor") {
  struct Twice : Parametrisation {
    Tensor operator()(const Tensor& stored) const override { return stored * 2.0; }
  };
  Linear a(3, 2, {.bias = false}), b(3, 2, {.bias = false});
  a.weight.parametrize(std::make_shared<Twice>());
  const Tensor before = a.weight.stored();
  CHECK_THROWS_WITH(a.weight = b.weight, Contains("parameter: it has a parametrisation"));
  CHECK_THROWS_WITH(a.weight = require_grad(ones({2, 3})), Contains("parameter: it has a parametrisation"));
  CHECK(a.weight.handle() == before.handle());
  b.weight = a.weight;  // copies the parametrisation as well
  check_close(b(ones({1, 3})), a(ones({1, 3})), 0);
}

TEST_CASE("assigned: a new leaf is what the module computes with, and an optimizer of the old one throws") {
  Linear linear(3, 2, {.bias = false});
  linear.prepare_inference();
  optim::Sgd sgd(linear.parameters(), {.lr = 1});
  linear.weight = require_grad(full({2, 3}, 2));
  {
    const NoGrad no_grad;
    CHECK(linear(ones({1, 3})).to_vector<float>() == std::vector<float>(2, 6));
  }
  backward(sum(linear(ones({1, 3}))));
  CHECK_THROWS(sgd.step());
  optim::Sgd(linear.parameters(), {.lr = 1}).step();
  CHECK(linear.state_dict().at("weight").to_vector<float>() == std::vector<float>(6, 1));
}

TEST_CASE("assigned: a buffer is saved, cloned, moved and converted, and has to fit") {
  Net net;
  net.bn.running_mean = tensor({5.f, 7.f});
  CHECK(net.state_dict().at("bn.running_mean").to_vector<float>() == std::vector<float>{5, 7});
  Net copy = clone(net);
  CHECK(copy.bn.running_mean.to_vector<float>() == std::vector<float>{5, 7});
  copy.to(DType::f64);
  copy.eval();
  // (W x - mean) / sqrt(1 + eps)
  const std::vector<double> y = copy(zeros({1, 3}, {DType::f64})).to_vector<double>();
  CHECK(std::abs(y[0] + 5 / std::sqrt(1 + 1e-5)) < 1e-14);
  CHECK(std::abs(y[1] + 7 / std::sqrt(1 + 1e-5)) < 1e-14);
  net.bn.running_var = tensor({1., 2.});
  refuses(net, "bn.running_var", "was assigned [2] f64 on cpu, expected [2] f32 on cpu");
  net.bn.running_var = net.bn.weight * 2.0;
  refuses(net, "bn.running_var", "was assigned the result of 'mul', expected a constant");
}
