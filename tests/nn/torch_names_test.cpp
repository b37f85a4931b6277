// Spellings of PyTorch's C++ frontend: registration, containers, layers, optimizers, padding_idx.
#include "autograd/engine.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "core/random.h"
#include "nn/activation.h"
#include "nn/container.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "nn/recurrent/recurrent.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/lion.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "optim/sign.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Values = std::vector<double>;

namespace {

struct Registered : nn::Module {
  nn::Linear& fc;
  nn::Parameter& scale;
  Tensor& seen;
  Registered()
      : fc(register_module("fc", nn::Linear(2, 3))),
        scale(register_parameter("scale", ones({3}))),
        seen(register_buffer("seen", zeros({1}))) {}
  Tensor forward(const Tensor& x) override { return fc(x) * scale(); }
};

}  // namespace

TEST_CASE("torch names: register_module, register_parameter and register_buffer register") {
  Registered net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"scale", "seen", "fc.weight", "fc.bias"});
  CHECK(net.parameters().size() == 3);
}

TEST_CASE("torch names: zero_grad of a module clears the gradients of its children, too") {
  Registered net;
  net(ones({1, 2})).sum().backward();
  REQUIRE(net.fc.weight.grad().defined());
  net.zero_grad();
  for (const Tensor& p : net.parameters()) CHECK_FALSE(p.grad().defined());
  net.fc.freeze();
  net.zero_grad();
}

TEST_CASE("torch names: push_back of containers") {
  nn::Sequential net;
  for (int i = 0; i < 3; ++i) net.push_back(nn::Linear(2, 2)).weight.require_grad();
  net.push_back(nn::ReLU());
  CHECK(net.children().size() == 4);
  CHECK(net.parameter_count() == 18);
  nn::ModuleList<nn::Linear> list;
  list.push_back(nn::Linear(2, 2));
  CHECK(list.size() == 1);
}

TEST_CASE("torch names: layers in PyTorch's spelling") {
  CHECK(nn::LSTM({.inputs = 2, .hidden = 3}).options.hidden == 3);
  CHECK(nn::GRU({.inputs = 2, .hidden = 3}).options.hidden == 3);
  CHECK(nn::BatchNorm1d(3).running_mean.numel() == 3);
  CHECK(nn::BatchNorm2d(3).running_mean.numel() == 3);
  CHECK(nn::GELU()(tensor({0.})).item() == 0);
  CHECK(nn::SiLU()(tensor({0.})).item() == 0);
}

TEST_CASE("torch names: an optimizer takes its rate as a number") {
  const Tensor w = ones({2}).require_grad();
  const std::vector<Tensor> p = {w};
  CHECK(optim::SGD(p, 0.5).lr() == 0.5);
  CHECK(optim::RMSprop(p, 0.25F).lr() == 0.25);
  CHECK(optim::Adam(p, 0.5).lr() == 0.5);
  CHECK(optim::AdamW(p, 0.5).lr() == 0.5);
  CHECK(optim::Adagrad(p, 0.5).lr() == 0.5);
  CHECK(optim::Adafactor(p, 0.5).lr() == 0.5);
  CHECK(optim::Lamb(p, 0.5).lr() == 0.5);
  CHECK(optim::Lars(p, 0.5).lr() == 0.5);
  CHECK(optim::Lion(p, 0.5).lr() == 0.5);
  CHECK(optim::SignSgd(p, 0.5).lr() == 0.5);
  CHECK(optim::Adam(p, {}).lr() == 1e-3);  // {} are the default options, not a rate of 0
  CHECK(optim::Adam(p, {0.5}).lr() == 0.5);
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

TEST_CASE("torch names: a named parameter is a name and a tensor") {
  Registered net;
  std::string names;
  int64_t count = 0;
  for (const auto& [name, tensor] : net.named_parameters()) names += name + ' ', count += tensor.numel();
  CHECK(names == "scale fc.weight fc.bias ");
  CHECK(count == net.parameter_count());
  for (auto& [name, tensor] : net.named_parameters()) CHECK(tensor.requires_grad());
}
