// The graph: gradients, hooks, misuse, depth.
#include <thread>

#include "nn/linear.h"
#include "tests/autograd/room.h"

TEST_CASE("a gradient is the sum over all paths") {
  const Tensor x = require_grad(tensor({2.0, -3.0}));
  backward(sum(x * x + x * 3.0 + x));
  CHECK(x.grad().to_vector<double>() == std::vector<double>{8, -2});
  backward(sum(x));
  CHECK(x.grad().to_vector<double>() == std::vector<double>{9, -1});
}

TEST_CASE("leaves that were given one gradient tensor own a copy each") {
  const Tensor a = require_grad(tensor({1.0})), b = require_grad(tensor({2.0})), c = tensor({5.0});
  backward(a + b, c);
  fill(a.grad(), 7);
  CHECK(b.grad().item() == 5);
  CHECK(c.item() == 5);
}

TEST_CASE("a leaf's gradient is contiguous, whatever was given") {
  const Tensor x = require_grad(from_vector<double>({0, 0, 0, 0}, {2, 2}));
  const Tensor g = from_vector<double>({1, 2, 3, 4}, {2, 2});
  set_grad(x, transpose(g, 0, 1));
  CHECK(x.grad().is_contiguous());
  CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 3, 2, 4});
  set_grad(x, g);
  CHECK(x.grad().data<double>() == g.data<double>());
  backward(sum(transpose(x, 0, 1)));
  CHECK(x.grad().is_contiguous());
  CHECK(g.to_vector<double>() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("a retained graph serves another backward, and a released one does not") {
  const Tensor x = require_grad(from_vector<double>({0.5, -2, 3, 1}, {2, 2}));
  const Tensor loss = sum(exp(matmul(x, x)) * x);
  backward(loss, {}, {.retain_graph = true});
  const std::vector<double> once = x.grad().to_vector<double>();
  set_grad(x, {});
  CHECK(grad(loss, {x}, {}, {.retain_graph = true})[0].to_vector<double>() == once);
  backward(loss);
  CHECK(x.grad().to_vector<double>() == once);
  CHECK_THROWS_WITH(backward(loss), Contains("already used by a backward and released"));
}

TEST_CASE("a retained graph gives the gradients that a loss has computed beforehand again") {
  const Tensor x = require_grad(from_vector<double>({1, 2, 3, 4, 5, 6}, {2, 3}));
  const Tensor weight = require_grad(from_vector<double>({1, 0, 2, 0, 1, 1}, {2, 3}));
  const Tensor target = from_vector<int64_t>({1, 0}, {2});
  const Tensor loss = linear_cross_entropy(x, weight, {}, target);
  for (const bool retain : {true, false}) {
    const auto g = grad(loss, {x, weight}, {}, {.retain_graph = retain});
    const auto expected = grad(reference::linear_cross_entropy(x, weight, {}, target), {x, weight});
    for (int i : {0, 1}) CHECK(amax(abs(g[i] - expected[i])).item() < 1e-12);
    CHECK(amax(abs(g[1])).item() > 0.1);
  }
}

TEST_CASE("grad() leaves the leaves' gradients alone and sees inner tensors") {
  const Tensor x = require_grad(tensor({3.0})), z = require_grad(tensor({1.0}));
  const Tensor y = x * x;
  const auto g = grad(sum(y * y), {x, y, z});
  CHECK(g[0].item() == 4 * 27);
  CHECK(g[1].item() == 18);
  CHECK(g[2].item() == 0);
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("hooks see the summed gradient and may replace it") {
  const Tensor x = require_grad(tensor({1.0}));
  const Tensor y = x * 2.0;
  double seen = 0;
  on_grad(y, [&](const Tensor& g) {
    seen = g.item();
    return g * 10.0;
  });
  backward(y + y * 3.0);
  CHECK(seen == 4);
  CHECK(x.grad().item() == 80);
}

TEST_CASE("a rule overwrites a gradient where nobody else holds it, and only there") {
  const Tensor x = require_grad(from_vector<double>({1, 2, 6}, {3, 1}));
  const Tensor g = from_vector<double>({3, 0, 0}, {3, 1});
  const std::vector<double> raw{3, 0, 0}, recentred{2, -1, -1};
  const double *before = nullptr, *after = nullptr;
  const auto show = [](const double*& at) {
    return [&at](const Tensor& t) {
      at = t.data<double>();
      return t;
    };
  };
  // The caller holds the cotangent; only the engine holds the gradient of the inner tensor.
  Tensor y = recentre(x, 0);
  on_grad(y, show(before)), on_grad(x, show(after));
  backward(y, g);
  CHECK(before == g.data<double>());
  CHECK(after != before);
  CHECK(g.to_vector<double>() == raw);
  CHECK(x.grad().to_vector<double>() == recentred);

  y = recentre(x, 0);
  on_grad(y, show(before));
  backward(y * 1.0, g);
  CHECK(after == before);
  y = square(x);
  on_grad(y, show(before));
  backward(y * 1.0, g);
  CHECK(after == before);
  CHECK(x.grad().to_vector<double>() == std::vector<double>{2 + 2 + 2 * 1 * 3, -1 - 1, -1 - 1});

  // A hook that keeps the gradient it was shown, and grad() of an inner tensor.
  Tensor seen;
  y = recentre(x, 0);
  on_grad(y, [&seen](const Tensor& t) { return seen = t; });
  const std::vector<Tensor> both = grad(sum(y * g), {y, x});
  CHECK(seen.to_vector<double>() == raw);
  CHECK(both[0].to_vector<double>() == raw);
  CHECK(both[1].to_vector<double>() == recentred);
  y = square(x);
  on_grad(y, [&seen](const Tensor& t) { return seen = t; });
  CHECK(grad(sum(y * g), {x})[0].to_vector<double>() == std::vector<double>{6, 0, 0});
  CHECK(seen.to_vector<double>() == raw);
}

TEST_CASE("NoGrad and detach cut the graph") {
  const Tensor x = require_grad(tensor({1.0}));
  CHECK_FALSE(requires_grad(detach(x) * 2.0));
  NoGrad guard;
  CHECK_FALSE(requires_grad(x * 2.0));
}

TEST_CASE("a frozen leaf is recorded by nobody, has no gradient, and thaws") {
  const Tensor x = require_grad(tensor({1.0, 2.0})), w = require_grad(tensor({3.0, 4.0}));
  const Tensor before = sum(x * w);
  backward(sum(x * w));
  require_grad(w, false);
  CHECK_FALSE(requires_grad(w));
  CHECK_FALSE(w.grad().defined());
  backward(before);  // recorded before x was frozen
  CHECK_FALSE(w.grad().defined());
  CHECK(x.grad().to_vector<double>() == std::vector<double>{6, 8});
  CHECK_FALSE(requires_grad(square(w)));
  CHECK((x * w).impl().node->inputs[1].node == nullptr);
  set_grad(w, {});
  CHECK_THROWS_WITH(set_grad(w, ones_like(w)), Contains("is frozen"));
  CHECK_THROWS_WITH(backward(w, ones_like(w)), Contains("does not depend on a leaf"));
  CHECK_THROWS_WITH(require_grad(x * 2.0, false), Contains("detach"));
  require_grad(w);
  backward(sum(x * w));
  CHECK(w.grad().to_vector<double>() == std::vector<double>{1, 2});
}

TEST_CASE("misuse is one clear line") {
  const Tensor x = require_grad(tensor({1.0, 2.0}));
  const Tensor y = sum(square(x));
  backward(y);
  CHECK_THROWS_WITH(backward(y), Contains("already used by a backward"));
  CHECK_THROWS_WITH(backward(x * 2.0), Contains("[2]") && Contains("cotangent"));
  CHECK_THROWS_WITH(backward(x.grad()), Contains("create_graph"));
  const Tensor z = sum(square(x));
  x.mutable_data<double>()[0] = 5;
  CHECK_THROWS_WITH(backward(z), Contains("changed in place"));
  CHECK_THROWS_WITH(backward(sum(x), tensor({1.0, 2.0})), Contains("cotangent is f64 [2]"));
  CHECK_THROWS_WITH(require_grad(x * 2.0), Contains("detach"));
}

TEST_CASE("a failed backward leaves no gradient in the graph") {
  for (const bool given : {false, true}) {  // given: the rule gives x its gradient before it finds the changed tensor
    const Tensor x = require_grad(tensor({1.0})), y = require_grad(tensor({2.0}));
    const Tensor bad = x * y;
    (given ? x : y).mutable_data<double>()[0] = 5;
    CHECK_THROWS(backward(bad + x));
    backward(x * 3.0);
    CHECK(x.grad().item() == 3);
  }
}

TEST_CASE("anomaly mode names the first op that produced NaN, or an infinity if these are asked for") {
  const Tensor x = require_grad(tensor({0.0, 4.0}));
  const AnomalyMode guard;
  const auto in_block = [](const std::function<Tensor()>& f) {
    const Scope scope("block");
    return f();
  };
  CHECK(log(x)[0].item() == -HUGE_VAL);
  CHECK_THROWS_WITH(in_block([&] { return log(x - 1.0); }), Contains("block: log: forward produced nan at element 0"));
  backward(sum(sqrt(x)));
  CHECK(x.grad()[0].item() == HUGE_VAL);
  const Tensor y = in_block([&] { return sum(sqrt(x) * tensor({0.0, 1.0})); });
  CHECK_THROWS_WITH(backward(y), "block: sqrt: backward produced nan at element 0 of shape [2]");
  {
    const AnomalyMode infinities({.infinities = true});
    CHECK_THROWS_WITH(log(x), Contains("log: forward produced -inf at element 0"));
    CHECK_THROWS_WITH(backward(sum(sqrt(x))), Contains("sqrt: backward produced inf"));
    const AnomalyMode inner;
    CHECK_NOTHROW(log(x));
  }
  CHECK_NOTHROW(log(x));
}

TEST_CASE("anomaly mode lets masks of -inf pass") {
  const AnomalyMode guard;
  const Tensor q = require_grad(full({1, 2, 4, 4}, 0.5, {DType::f64}));
  const Tensor hidden = triu(ones({4, 4}, {DType::u8}), 1);
  backward(sum(softmax(masked_fill(q, hidden, -HUGE_VAL))));
  backward(sum(reference::scaled_dot_product_attention(q, q, q, {.causal = true})));
  CHECK(all(isfinite(q.grad())).item() == 1);
}

TEST_CASE("a backward names the fault of its loss and the remedy") {
  const Tensor x = require_grad(ones({3, 4})), none;
  CHECK_THROWS_WITH(backward(x * 2.0),
                    "backward: the tensor has shape [3, 4], expected a loss of one element: reduce it by "
                    "mean() or sum(), or give a cotangent of its shape");
  CHECK_THROWS_WITH(backward(none), Contains("backward: the loss is undefined"));
  CHECK_THROWS_WITH(none.backward(), Contains("backward: the loss is undefined"));
  CHECK_THROWS_WITH(grad(none, {x}), Contains("grad: output 0 is undefined"));
  CHECK_THROWS_WITH(grad(sum(x), {x, none}), Contains("grad: input 1 is undefined"));
  CHECK_THROWS_WITH(backward(sum(detach(x))), Contains("does not depend on a leaf that requires a gradient") &&
                                                  Contains("computed under NoGrad"));
}

TEST_CASE("a chain of a million ops neither overflows the stack nor leaks") {
  const Tensor x = require_grad(tensor({1.0}));
  {
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = y + 1.0;
    backward(y);
    CHECK(x.grad().item() == 1);
    for (int i = 0; i < 1000000; ++i) y = y * 1.0;
  }  // the second half is destroyed without a backward
  CHECK(x.handle().use_count() == 1);
}

TEST_CASE("graphs of any form come down without recursion, node by node, and leave nothing") {
  const Tensor x = require_grad(tensor({1.0})), w = require_grad(tensor({1.0}));
  {
    Tensor second = x, comb = x, twins = x;
    for (int i = 0; i < 200000; ++i) {
      second = w + second;                                        // continues along the second edge
      comb = (w + 1.0) + (comb + (w * 2.0));                      // teeth on both sides of it
      if (i < 100000) twins = (twins + 1.0) + (twins + 2.0) * w;  // two ways to every node
    }
  }
  CHECK(x.handle().use_count() == 1);
  CHECK(w.handle().use_count() == 1);
  CHECK(w.impl().node.use_count() == 1);
}

TEST_CASE("the parts of a split share one node: 1000 parts cost no more than 2") {
  const Tensor x = require_grad(zeros({20000}, {DType::f64}));
  const std::vector<Tensor> parts = split(x, std::vector<int64_t>(20000, 1), 0);
  CHECK(parts.front().impl().node == parts.back().impl().node);
  CHECK(parts.back().impl().node->outputs.size() == 20000);
  backward(parts[3] * 5.0 + parts[19999] * 7.0);
  const std::vector<double> g = x.grad().to_vector<double>();
  for (size_t i = 0; i < g.size(); ++i) CHECK(g[i] == (i == 3 ? 5 : i == 19999 ? 7 : 0));
}

TEST_CASE("a graph may be built on in another thread") {
  const Tensor x = require_grad(tensor({3.0}));
  Tensor z;
  const Tensor y = x * x;
  std::thread([&] { z = (y * 2.0) * y; }).join();
  backward(z);
  CHECK(x.grad().item() == 4 * 2 * 27);
}

TEST_CASE("two graphs in two threads do not meet") {
  double result[2] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([t, &result] {
      const Tensor w = require_grad(tensor({1.0 + t}));
      for (int i = 0; i < 2000; ++i) backward(sum(w * w));
      result[t] = w.grad().item();
    });
  for (auto& t : threads) t.join();
  CHECK(result[0] == 4000);
  CHECK(result[1] == 8000);
}

TEST_CASE("grad: parameters() of a module are inputs") {
  nn::Linear net(2, 1);  // y = w x + b
  const Tensor x = tensor({{3.f, 4.f}});
  const std::vector<Tensor> slopes = grad(sum(net(x)), net.parameters());
  CHECK(slopes[0].to_vector<double>() == std::vector<double>{3, 4});
  CHECK(slopes[1].to_vector<double>() == std::vector<double>{1});
  CHECK(grad(net(x), net.parameters(), tensor({{2.f}}))[0].to_vector<double>() == std::vector<double>{6, 8});
  CHECK_FALSE(net.weight.grad().defined());

  // d y^2 / dw = 2 y x, and the sum of these has the derivative 2 x (x_0 + x_1) by w.
  const std::vector<Tensor> first = grad(sum(square(net(x))), net.parameters(), {.create_graph = true});
  CHECK(grad(sum(first[0]), net.parameters())[0].to_vector<double>() == std::vector<double>{2 * 3 * 7, 2 * 4 * 7});
}

TEST_CASE("grad: inputs in braces, a single output of several forms") {
  nn::Linear net(2, 1);
  const Tensor x = tensor({{3.f, 4.f}}), y = net(x);
  CHECK(grad(y[0], {net.weight}, {}, {.retain_graph = true})[0].to_vector<double>() == std::vector<double>{3, 4});
  CHECK(grad({y}, {net.bias}, {}, {.retain_graph = true})[0].item() == 1);
  const std::vector<Tensor> outputs{y, y * 2.0};
  CHECK(grad(outputs, net.parameters())[1].item() == 3);
}
