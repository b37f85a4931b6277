// Checkpointed parts: values and gradients are equal to those without a checkpoint; memory; refusals.
#include "autograd/checkpoint.h"

#include "tests/autograd/room.h"

namespace {

struct Net {
  Tensor x = require_grad(from_vector<double>({0.3, -1, 2, 0.7, 1.5, -0.2}, {3, 2}));
  Tensor weight = require_grad(from_vector<double>({0.5, -0.25, 1, 0.125}, {2, 2}));
  int runs = 0;

  Tensor part(const Tensor& h) {
    ++runs;
    return dropout(tanh(matmul(h, weight)), 0.5) + h * sum(weight);
  }
  // Three parts in turn; both leaves are also used outside of them.
  Tensor loss(bool checkpointed) {
    manual_seed(7);
    runs = 0;
    const auto f = [this](const Tensor& h) { return part(h); };
    Tensor h = x;
    for (int i = 0; i < 3; ++i) h = checkpointed ? checkpoint(f, h) : f(h);
    return sum(h * rand({3, 2}, {DType::f64})) + sum(weight * weight) + sum(x);
  }
};

}  // namespace

TEST_CASE("a checkpointed part gives the gradients of the part, of inputs and of leaves that it uses") {
  Net net;
  const Tensor plain = net.loss(false);
  const auto expected = grad(plain, {net.x, net.weight});
  const Tensor loss = net.loss(true);
  CHECK(net.runs == 3);
  CHECK(loss.item() == plain.item());
  const Generator before = default_generator();
  backward(loss);
  CHECK(net.runs == 6);
  CHECK(default_generator() == before);
  CHECK(amax(abs(net.x.grad() - expected[0])).item() < 1e-14);
  CHECK(amax(abs(net.weight.grad() - expected[1])).item() < 1e-14);
}

TEST_CASE("a checkpointed part of inputs without gradient reaches its leaves, and grad() touches none") {
  Net net;
  const Tensor data = detach(net.x);
  const Tensor loss = sum(checkpoint([&](const Tensor& h) { return exp(matmul(h, net.weight)); }, data));
  const auto g = grad(loss, {net.weight}, {}, {.retain_graph = true});
  CHECK(!net.weight.grad().defined());
  const auto expected = grad(sum(exp(matmul(data, net.weight))), {net.weight});
  CHECK(amax(abs(g[0] - expected[0])).item() < 1e-14);
  backward(loss);
  CHECK(amax(abs(net.weight.grad() - expected[0])).item() < 1e-14);
}

TEST_CASE("of several outputs one may go unused, and a part may nest another") {
  Net net;
  const auto f = [&](const std::vector<Tensor>& in) {
    const Tensor y = checkpoint([](const Tensor& h) { return exp(h); }, in[0]);
    return std::vector<Tensor>{y * in[1], in[0], in[1]};
  };
  const std::vector<Tensor> y = checkpoint(f, {net.x, net.x + 1.0});
  const auto g = grad(sum(y[0]) + sum(y[1] * 3.0), {net.x});
  const Tensor x = detach(net.x), expected = exp(x) * (x + 2.0) + 3.0;
  CHECK(amax(abs(g[0] - expected)).item() < 1e-14);
}

TEST_CASE("nothing is kept of a checkpointed part, and nothing recorded without gradients") {
  Net net;
  std::weak_ptr<Storage> inner;
  const auto f = [&](const Tensor& h) {
    const Tensor e = exp(h);
    if (!grad_enabled()) inner = e.impl().storage;
    return e * e;
  };
  const Tensor y = checkpoint(f, net.x);
  CHECK(inner.expired());
  CHECK(requires_grad(y));
  const NoGrad no_grad;
  CHECK(!requires_grad(checkpoint(f, net.x)));
}

TEST_CASE("a checkpointed part that changes, or whose input has changed, is refused") {
  Net net;
  int runs = 0;
  const auto grows = [&](const Tensor& h) { return runs++ ? sum(h) : exp(h); };
  const Tensor y = checkpoint(grows, net.x);
  CHECK_THROWS_WITH(backward(sum(y)),
                    Contains("checkpoint: output 0 is f64 [] when the function is run again, it was f64 [3, 2]"));
  const Tensor h = net.x + 1.0, z = checkpoint([](const Tensor&t) { return exp(t); }, h);
  fill(h, 3);
  CHECK_THROWS(backward(sum(z)));
  CHECK_THROWS_WITH(checkpoint([](const Tensor& t) { return t.to(DType::i64); }, net.x),
                    Contains("checkpoint: an output is i64"));
}

TEST_CASE("if the second run of a checkpointed part throws, the default generator keeps its state") {
  Net net;
  const auto fails = [](const Tensor& h) {
    check(!grad_enabled(), "out of luck");
    return h * rand(h.shape(), {DType::f64});
  };
  const Tensor y = sum(checkpoint(fails, net.x));
  rand({8});
  const Generator before = default_generator();
  CHECK_THROWS_WITH(backward(y), Contains("out of luck"));
  CHECK(default_generator() == before);
}
