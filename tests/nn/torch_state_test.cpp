// PyTorch state dicts in a user's modules: from_torch() and to_torch() (tests/fixtures/torch_state.py).
#include "nn/torch_state.h"

#include "autograd/methods.h"
#include "autograd/ops/index.h"
#include "autograd/ops/reduce.h"
#include "io/safetensors.h"
#include "nn/attention.h"
#include "nn/conv.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "nn/recurrent/recurrent.h"
#include "nn/transformer.h"
#include "tests/nn/models.h"
#include "tests/support/compare.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

struct Picture : nn::Module {
  nn::Conv2d& conv = add("conv", nn::Conv2d(3, 4, 3, {.padding = 1}));
  nn::BatchNorm& bn = add("bn", nn::BatchNorm(4));
  nn::Conv2d& grouped = add("grouped", nn::Conv2d(4, 4, {2, 1}, {.groups = 2, .bias = false}));
  nn::Linear& fc = add("fc", nn::Linear(4, 2));
  Tensor forward(const Tensor& x) override { return fc(relu(grouped(bn(conv(x)))).mean({1, 2})); }
};

struct Resized : nn::Module {
  nn::ConvTranspose2d& up = add("up", nn::ConvTranspose2d(4, 6, 4, {.stride = 2, .padding = 1, .groups = 2}));
  nn::Conv1d& rows = add("rows", nn::Conv1d(6, 6, 6));
  Tensor forward(const Tensor& x) override { return rows(up(x).mean({2})); }
};

struct Sequence : nn::Module {
  nn::Lstm& lstm = add("lstm", nn::Lstm({.inputs = 3, .hidden = 4, .layers = 2, .bidirectional = true}));
  nn::Gru& gru = add("gru", nn::Gru({.inputs = 8, .hidden = 4}));
  nn::MultiheadAttention& attention = add("attention", nn::MultiheadAttention(4, {.heads = 2}));
  nn::CrossAttention& cross = add("cross", nn::CrossAttention(4, 4, {.heads = 2, .qkv_bias = true}));
  Tensor forward(const Tensor& x) override {
    const Tensor h = gru(lstm(x).output).output;
    return cross(attention(h), h, {});
  }
};

struct Layers : nn::Module {
  nn::TransformerStack& encoder = add(
      "encoder",
      nn::TransformerStack(nn::TransformerOptions{.width = 4, .depth = 2, .heads = 2, .mlp_width = 6, .affine = true}));
  Tensor forward(const Tensor& x) override { return encoder(x); }
};

// The nets compute a few consecutive sums of up to 27 products of numbers near 1.
constexpr double kTolerance = 1e-13;

template <class Net> void check_net(const std::string& name) {
  INFO(name);
  TensorMap given = nn::below(load_safetensors("tests/fixtures/torch_state.safetensors"), name + '/'), state;
  const Tensor x = given.at("x"), y = given.at("y");
  for (const auto& [key, t] : given)
    if (key.size() > 1) state.add(key, t);
  Net net;
  net.to(DType::f64);
  net.load_state_dict(nn::from_torch(net, state));
  net.eval();
  CHECK((net(x) - y).abs().amax().item() < kTolerance);

  const TensorMap back = nn::to_torch(net);
  CHECK(back.size() == state.size());
  for (const auto& [key, t] : state) {
    INFO(key);
    if (key.ends_with("num_batches_tracked"))
      CHECK(back.at(key).shape() == t.shape());
    else
      CHECK(equal(back.at(key), t));
  }
}

}  // namespace

TEST_CASE(
    "torch state: convolutions, batch norm, recurrent layers, attention and Transformer layers compute what PyTorch "
    "does") {
  check_net<Picture>("picture");
  check_net<Sequence>("sequence");
  check_net<Layers>("layers");
  check_net<Resized>("resized");
}

TEST_CASE("torch state: names that one side lacks are named when the state is loaded") {
  struct Net : nn::Module {
    nn::Lstm& lstm = add("lstm", nn::Lstm({.inputs = 2, .hidden = 3}));
    nn::Linear& fc = add("fc", nn::Linear(3, 2));
  } net;
  TensorMap state;
  for (const auto& [name, t] : nn::to_torch(net))
    if (name != "lstm.bias_hh_l0") state.add(name, t);
  state.add("old.weight", ones({2}));
  CHECK_THROWS_WITH(
      net.load_state_dict(nn::from_torch(net, state)),
      Contains("missing     lstm.forward0.recurrent.bias [12]") && Contains("unexpected  old.weight [2]"));
}

TEST_CASE("torch state: a wrong shape is reported by PyTorch's name, or listed by load_state_dict()") {
  struct Net : nn::Module {
    nn::Conv2d& conv = add("conv", nn::Conv2d(2, 3, 1));
    nn::CrossAttention& attention = add("attention", nn::CrossAttention(4, 4, {.heads = 2}));
    nn::Linear& fc = add("fc", nn::Linear(3, 2));
  } net;
  const auto with = [&](const std::string& replaced, const Tensor& x) {
    TensorMap state;
    for (const auto& [name, t] : nn::to_torch(net)) state.add(name, name == replaced ? x : t);
    return state;
  };
  CHECK_THROWS_WITH(nn::from_torch(net, with("conv.weight", ones({3, 2}))),
                    Contains("conv.weight is [3, 2], expected [out, in, height, width]"));
  CHECK_THROWS_WITH(nn::from_torch(net, with("attention.in_proj_weight", ones({8, 4}))),
                    Contains("attention.in_proj_weight is [8, 4], expected 12 rows"));
  CHECK_THROWS_WITH(net.load_state_dict(nn::from_torch(net, with("fc.weight", ones({4, 3})))),
                    Contains("fc.weight: expected [2, 3], given [4, 3]"));
}

TEST_CASE("torch state: a tied tensor has both of its names") {
  struct Net : nn::Module {
    nn::Linear& in = add("in", nn::Linear(2, 2));
    nn::Linear& out = add("out", nn::Linear(2, 2));
  } net;
  net.out.weight = net.in.weight;
  const TensorMap state = nn::to_torch(net);
  CHECK(state.size() == 4);
  Net other;
  other.out.weight = other.in.weight;
  other.load_state_dict(nn::from_torch(other, state));
  CHECK(equal(other.in.weight, net.in.weight));
}

TEST_CASE("torch state: load_state_dict() names from_torch() if names or layouts are PyTorch's") {
  struct Net : nn::Module {
    nn::Conv2d& conv = add("conv", nn::Conv2d(2, 3, 1));
    nn::Gru& gru = add("gru", nn::Gru({.inputs = 2, .hidden = 3}));
  } net;
  const std::string told = "they are PyTorch's, which nn::from_torch(module, tensors) converts:\n";
  CHECK_THROWS_WITH(net.load_state_dict(nn::to_torch(net)), Contains(told));
  TensorMap layout = nn::clone(net.state_dict()), other;
  for (const auto& [name, x] : layout) other.add(name, name == "conv.weight" ? ones({3, 2, 1, 1}) : x);
  CHECK_THROWS_WITH(net.load_state_dict(other), Contains(told));
  TensorMap plain;
  for (const auto& [name, x] : layout) plain.add(name == "conv.bias" ? "conv.offset" : name, x);
  CHECK_THROWS_WITH(net.load_state_dict(plain), Contains("do not fit this module:\n"));
}
