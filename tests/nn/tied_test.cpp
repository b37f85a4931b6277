// Weight tying: a tensor with several names in a module.
#include "nn/gpt.h"
#include "nn/group_norm.h"
#include "optim/sgd.h"
#include "streams/parametrize.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;

namespace {

struct Head : Module {
  explicit Head(const Tensor& table) { add_parameter("weight", table); }
};
struct Constructed : Module {
  Embedding& table = add("table", Embedding(3, 2));
  Head& head = add("head", Head(table.weight));
};

struct Pair : Module {
  Linear& a = add("a", Linear(2, 2));
  Linear& b = add("b", Linear(2, 2));
  Tensor forward(const Tensor& x) override { return b(a(x)); }
};

bool same(const Tensor& x, const Tensor& y) { return x.handle() == y.handle(); }

TensorMap tensors(std::initializer_list<std::pair<std::string, double>> filled) {
  TensorMap map;
  for (const auto& [name, value] : filled) map.add(name, full({3, 2}, value));
  return map;
}

}  // namespace

TEST_CASE("tied: a tensor is listed, counted and saved once, under its first name") {
  Constructed net;
  const std::vector<NamedParameter> listed = net.named_parameters();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].name == "table.weight");
  CHECK(listed[0].aliases == Names{"head.weight"});
  CHECK(net.parameters().size() == 1);
  CHECK(net.parameter_count() == 6);
  CHECK(net.state_dict().size() == 1);
  CHECK(net.head.named_parameters()[0].aliases.empty());
}

TEST_CASE("tied: a tensor loads under any of its names, and under several if the values are equal") {
  Constructed net;
  const auto value = [&] { return net.table.weight.to_vector<float>()[5]; };
  net.load_state_dict(tensors({{"table.weight", 1}}));
  CHECK(value() == 1);
  net.load_state_dict(tensors({{"head.weight", 2}}));
  CHECK(value() == 2);
  net.load_state_dict(tensors({{"head.weight", 3}, {"table.weight", 3}}));
  CHECK(value() == 3);
  CHECK(net.load_state_dict(tensors({{"head.weight", 4}, {"other", 4}}), {.strict = false}).unexpected ==
        Names{"other"});
  CHECK(value() == 4);
  CHECK_THROWS_WITH(net.load_state_dict(tensors({{"head.weight", 5}, {"table.weight", 6}})),
                    "load_state_dict: the tensors do not fit this module:\n"
                    "  tied        head.weight is the tensor table.weight, given other values");
  CHECK(value() == 4);
}

TEST_CASE("tied: an assigned leaf is the parameter of both modules, and its gradient is the sum") {
  Pair net;
  net.to(DType::f64);
  net.b.weight = net.a.weight;
  CHECK(names(net) == Names{"a.weight", "a.bias", "b.bias"});
  CHECK(net.parameter_count() == 8);
  CHECK(net.state_dict().size() == 3);
  // y = W h + c, h = W x + d, loss = y0 + y1: dW[i][j] = h[j] + x[j] (W[0][i] + W[1][i])
  const std::vector<double> w = net.a.weight.to_vector<double>(), d = net.a.bias.to_vector<double>(), x = {0.5, -2};
  const std::vector<double> h = {w[0] * x[0] + w[1] * x[1] + d[0], w[2] * x[0] + w[3] * x[1] + d[1]};
  optim::Sgd sgd(net.parameters(), {.lr = 0.5});
  backward(sum(net(tensor({{0.5, -2.}}))));
  sgd.step();
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j) {
      const double expected = w[2 * i + j] - 0.5 * (h[j] + x[j] * (w[i] + w[2 + i]));
      CHECK(std::abs(net.b.weight.to_vector<double>()[2 * i + j] - expected) < 1e-14);
    }
}

TEST_CASE("tied: clone, to and a move keep ties, and a clone has no others") {
  Pair net;
  net.b.weight = net.a.weight;
  net.to(DType::f64);
  CHECK(same(net.a.weight, net.b.weight));
  CHECK(net.b.weight.dtype() == DType::f64);
  net.a.weight.require_grad(false);
  Pair copy = clone(net);
  CHECK(same(copy.a.weight, copy.b.weight));
  CHECK_FALSE(same(copy.a.weight, net.a.weight));
  CHECK_FALSE(requires_grad(copy.b.weight));
  const Pair moved = std::move(copy);
  CHECK(same(moved.a.weight, moved.b.weight));
  CHECK(names(moved) == Names{"a.weight", "a.bias", "b.bias"});

  Constructed apart;
  static_cast<Parameter&>(*apart.head.find_parameter("weight")) = require_grad(full({3, 2}, 7));
  const Constructed other = clone(apart);
  CHECK(names(other) == Names{"table.weight", "head.weight"});
  CHECK(other.parameters()[1].to_vector<float>() == std::vector<float>(6, 7));
}

TEST_CASE("tied: replace() ties the parameters of the old child to the new one, and refuses another shape") {
  Pair net;
  net.b.weight = net.a.weight;
  net.replace("a", Linear(2, 2));
  CHECK(same(net.a.weight, net.b.weight));
  CHECK(net.parameters().size() == 3);
  CHECK_THROWS_WITH(net.replace("b", Linear(2, 5)), Contains("replace: 'a.weight' is tied to 'weight' [2, 2]"));
  CHECK(same(net.a.weight, net.b.weight));
  net.b.weight = require_grad(clone(detach(net.b.weight)));
  net.replace("b", Linear(2, 5));
  CHECK(names(net) == Names{"a.weight", "a.bias", "b.weight", "b.bias"});
}

TEST_CASE("tied: a head that reads with its table loads under its own name, too") {
  Gpt gpt({.vocab = 5, .context = 4, .tied = true, .transformer = {.width = 8, .depth = 1, .heads = 2}});
  TensorMap state = clone(gpt.state_dict()), renamed;
  for (const auto& [name, t] : state) renamed.add(name == "token.weight" ? "head.weight" : name, full(t.shape(), 3));
  gpt.load_state_dict(renamed);
  CHECK(gpt.state_dict().at("token.weight").to_vector<float>() == std::vector<float>(40, 3));
  const Gpt copy = clone(gpt);
  CHECK(names(copy) == names(gpt));
}

TEST_CASE("tied: a stream refuses layers that were tied by assignment") {
  struct Net : Module {
    Embedding& token = add("token", Embedding(6, 8));
    LayerNorm& norm = add("norm", LayerNorm(8));
    Linear& head = add("head", Linear(8, 6, {.bias = false}));
  } net;
  net.head.weight = net.token.weight;
  CHECK_THROWS_WITH(streams::parametrize(net, streams::Layout().writes("token").reads("head", "norm"),
                                         streams::Stream(streams::Form::rms_norm, 8)),
                    "layout: 'head.weight' was assigned 'token.weight'; on a stream a head reads with "
                    "Linear::tied_to(table)");
}
